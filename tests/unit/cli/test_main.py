from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint, EntryPoints

import click
import pytest

import odradek
from odradek.cli import main as command_line
from odradek.cli.errors import CommandFailed
from odradek.cli.main import SUBCOMMANDS, cli, main, run
from odradek.cli.topics import topics
from odradek.client.errors import ConnectFailed
from odradek.plugin.config import ConfigError

HEAVY = ("google.protobuf", "grpc", "aiohttp", "opentelemetry", "rich", "sqlite3", "asyncio")


@pytest.fixture
def raising(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[BaseException]]:
    """A subcommand ``raise`` that raises the exception in the list."""
    errors: list[BaseException] = []

    @click.command("raise")
    def fail() -> None:
        raise errors.pop()

    monkeypatch.setattr(command_line, "SUBCOMMANDS", {"raise": ("tests:raise", "Raise.")})
    monkeypatch.setattr(command_line.LazyGroup, "get_command", lambda self, ctx, name: fail)
    yield errors
    assert errors == []


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["--version"])

    assert status == 0
    assert capsys.readouterr().out == f"odradek {odradek.__version__}\n"


def test_the_help_page_names_every_subcommand(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["--help"])

    page = capsys.readouterr().out
    assert status == 0
    assert all(name in page and text in page for name, (_, text) in SUBCOMMANDS.items())


def test_without_arguments_help_is_printed_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    status = run([])

    assert status == 2
    assert "client-metrics" in capsys.readouterr().out


@pytest.mark.parametrize("name", sorted(SUBCOMMANDS))
def test_every_subcommand_is_in_the_module_the_table_names(name: str) -> None:
    context = click.Context(cli)

    command = cli.get_command(context, name)

    assert isinstance(command, click.Command)
    assert command.name == name


@pytest.mark.parametrize("name", sorted(SUBCOMMANDS))
def test_every_subcommand_prints_its_help_with_h(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run([name, "-h"])

    assert status == 0
    assert f"Usage: odradek {name} [OPTIONS]" in capsys.readouterr().out


def entry_point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, command_line.COMMAND_GROUP)


def offer(monkeypatch: pytest.MonkeyPatch, *offered: EntryPoint) -> None:
    """Let plugins offer subcommands."""
    found = EntryPoints(offered)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found.select(group=group))


def test_a_plugin_can_offer_a_subcommand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch, entry_point("more", "odradek.cli.topics:topics"))

    status = run(["more", "--help"])

    assert status == 0
    assert "Usage: odradek more " in capsys.readouterr().out


def test_the_help_page_does_not_import_plugin_subcommands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch, entry_point("more", "no_such_module:command"))

    status = run(["--help"])

    assert status == 0
    assert "  more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("offered", "line"),
    [
        ("no_such_module:command", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("json:dumps", "json:dumps is not a click command"),
    ],
)
def test_a_broken_subcommand_of_a_plugin_is_one_line_and_status_1(
    offered: str, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch, entry_point("more", offered))

    status = run(["more"])

    printed = capsys.readouterr().err
    assert status == 1
    assert printed.startswith("odradek more: ")
    assert printed.endswith(f"{line}\n")


def test_a_plugin_cannot_replace_a_subcommand_of_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, entry_point("topics", "json:dumps"))

    assert cli.get_command(click.Context(cli), "topics") is topics


def test_a_missing_subcommand_of_an_extra_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    offer(monkeypatch)

    status = run(["spark", "ingest"])

    assert status == 1
    assert capsys.readouterr().err == "odradek spark: not installed: install the extra odradek[spark]\n"


@pytest.mark.parametrize(
    ("arguments", "command", "culprit"),
    [
        (["--bogus"], "odradek", "--bogus"),
        (["nonsense"], "odradek", "nonsense"),
        (["client-metrics", "--list"], "odradek client-metrics", "--bootstrap-server"),
        (["plugins", "--nope"], "odradek plugins", "--nope"),
    ],
)
def test_a_bad_command_line_is_one_line_and_status_2(
    arguments: list[str], command: str, culprit: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(arguments)

    streams = capsys.readouterr()
    assert status == 2
    assert streams.err.startswith(f"{command}: ")
    assert culprit in streams.err
    assert streams.err.count("\n") == 1
    assert streams.out == ""


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (
            ConfigError("plugins.otlp.timeout.ms", "expected a number"),
            2,
            "odradek: plugins.otlp.timeout.ms: expected a number",
        ),
        (ConnectFailed("localhost:1: connection refused"), 1, "odradek: localhost:1: connection refused"),
        (CommandFailed("it failed"), 1, "it failed"),
        (CommandFailed("two\n  lines"), 1, "two lines"),
        (click.UsageError("no such thing"), 2, "odradek raise: no such thing"),
        (click.ClickException("no good"), 1, "odradek: no good"),
    ],
)
def test_an_expected_error_is_one_line_and_its_status(
    raising: list[BaseException], error: Exception, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    raising.append(error)

    found = run(["raise"])

    assert (found, capsys.readouterr().err) == (status, f"{line}\n")


@pytest.mark.parametrize("interruption", [KeyboardInterrupt(), click.Abort()])
def test_an_interruption_prints_nothing(
    raising: list[BaseException], interruption: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    raising.append(interruption)

    status = run(["raise"])

    assert status == 130
    assert capsys.readouterr().err.strip() == ""


def test_a_bug_keeps_its_traceback(raising: list[BaseException]) -> None:
    raising.append(ZeroDivisionError("a bug"))

    with pytest.raises(ZeroDivisionError):
        run(["raise"])


def test_main_exits_with_the_status() -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])

    assert ended.value.code == 0


def test_completion_of_commands_imports_none_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch)
    monkeypatch.setattr(command_line.LazyGroup, "get_command", lambda *args: pytest.fail("imported"))

    found = cli.shell_complete(click.Context(cli), "top")

    assert [(item.value, item.help) for item in found] == [
        (name, SUBCOMMANDS[name][1]) for name in ("topics", "topology")
    ]
