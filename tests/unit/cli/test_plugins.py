from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import pytest

from odradek.cli import plugins as command
from odradek.cli.main import run
from odradek.hosting.plugin_manager import HostPluginManager, InstalledPlugin
from odradek.metadata.store import MetadataStore
from odradek.plugin.config import PluginConfig
from odradek.plugin.hookspecs import hookimpl
from odradek.plugin.protocols import Enricher
from odradek.programs.file_subscriptions import FROM_FILE
from odradek.wire.config_resource import ResourceType


class Labels:
    """A plugin that offers a receiver only if a key is set."""

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Enricher | None:
        return Constant() if config.text("team") else None


class Constant:
    def labels(self, client_instance_id: bytes, context: object) -> dict[str, str]:
        return {}


def installed(given: Mapping[str, object] | None = None) -> HostPluginManager:
    """A working plugin, and a plugin that cannot be imported; then those of ``--plugin``."""
    manager = HostPluginManager()
    manager.add("labels", Labels(), "odradek-labels", "1.2.3")
    manager.installed["broken"] = InstalledPlugin(
        name="broken", distribution="odradek-broken", version="0.1", problem="ImportError: no module named x"
    )
    manager.give_all(given or {})
    return manager


@pytest.fixture(autouse=True)
def two_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "load_plugins", installed)


def table(folder: Path, text: str) -> str:
    file = folder / "odradek.toml"
    file.write_text(text)
    return str(file)


MINE = """from odradek.plugin import hookimpl
class Team:
    def labels(self, client_instance_id, context): return {}
@hookimpl
def odradek_enricher(config): return Team() if config.text("team") else None
"""


def test_a_plugin_of_a_file_is_listed_with_its_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)

    status = run(["plugins", "--plugin", str(file), "--set", "plugins.mine.team=x", "--json"])

    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert status == 0
    assert [(row["distribution"], row["state"]) for row in rows if row["name"] == "mine"] == [
        ("not installed", "active")
    ]


def test_a_named_plugin_that_offers_nothing_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(MINE)

    assert run(["plugins", "--plugin", str(file)]) == 2
    assert "it read team, which the table lacks" in capsys.readouterr().err


def test_plain_lines_are_aligned(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["plugins"])

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        "name    distribution    version  state   hooks",
        "broken  odradek-broken  0.1      broken  ImportError: no module named x",
        "labels  odradek-labels  1.2.3    idle    odradek_enricher",
    ]


def test_json_is_one_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["plugins", "--json"])

    broken, labels = map(json.loads, capsys.readouterr().out.splitlines())
    assert status == 0
    assert labels == {
        "name": "labels",
        "distribution": "odradek-labels",
        "version": "1.2.3",
        "state": "idle",
        "hooks": ["odradek_enricher"],
    }
    assert (broken["state"], broken["problem"]) == ("broken", "ImportError: no module named x")


@pytest.mark.parametrize(
    ("text", "state"),
    [('[plugins.labels]\nteam = "x"\n', "active"), ("[plugins.labels]\nenabled = false\n", "disabled")],
)
def test_the_configuration_decides_the_state(
    text: str, state: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(["plugins", "--json", "--config", table(tmp_path, text)])

    states = {row["name"]: row["state"] for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert status == 0
    assert states["labels"] == state


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("[plugins.labels]\nteem = 1\n", "plugins.labels.teem"),
        ("[plugins.missing]\n", "plugins.missing"),
        ('[plugins.broken]\nkey = "x"\n', "plugins.broken"),
    ],
)
def test_a_bad_table_is_one_line_and_status_2(
    text: str, path: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = run(["plugins", "--config", table(tmp_path, text)])

    error = capsys.readouterr().err
    assert status == 2
    assert error.startswith(f"odradek: {path}: ")
    assert error.count("\n") == 1


def test_a_terminal_gets_a_table(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    status = run(["plugins"])

    page = capsys.readouterr().out
    assert status == 0
    assert all(
        text in page for text in ("odradek-labels", "1.2.3", "idle", "odradek_enricher", "no module named x")
    )


def test_a_long_problem_leaves_each_row_its_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name, problem = "acme-telemetry-relabeler", "RuntimeError: cannot open " + "/opt/acme" * 12
    manager = installed()
    manager.installed[name] = InstalledPlugin(
        name=name, distribution=f"odradek-{name}", version="9.1", problem=problem
    )
    monkeypatch.setattr(command, "load_plugins", lambda _given=None: manager)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    run(["plugins"])

    page = click.unstyle(capsys.readouterr().out)
    assert any(name in line and "broken" in line for line in page.splitlines())
    assert f"{name} is broken: {problem}" in "".join(page.splitlines())
    assert max(map(len, page.splitlines())) <= 80


class Raising:
    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> Enricher | None:
        raise LookupError("no directory")


def test_a_plugin_whose_hook_raises_is_listed_as_broken_beside_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = installed()
    manager.add("raising", Raising(), "odradek-raising", "1")
    monkeypatch.setattr(command, "load_plugins", lambda _given=None: manager)

    status = run(["plugins", "--json"])

    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert status == 0
    assert rows["raising"]["state"] == "broken"
    assert rows["raising"]["problem"].startswith(
        f"odradek_enricher raised LookupError: no directory ({__file__}:"
    )
    assert rows["labels"]["state"] == "idle"


class Beside:
    """A plugin whose companion reports its progress, or fails."""

    def __init__(self, told: Mapping[str, object] | None) -> None:
        self.told = told

    @hookimpl
    def odradek_companion(self, config: PluginConfig) -> Beside:
        return self

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        return []

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        if self.told is None:
            raise OSError("no disk")
        return {**self.told, "of": bootstrap_servers}


@pytest.mark.parametrize(
    ("told", "line"),
    [({"lag": 7}, "beside: lag 7, of 127.0.0.1:9092"), (None, "beside: problem OSError: no disk")],
)
def test_a_companion_reports_its_progress(
    told: Mapping[str, object] | None,
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def with_companion() -> HostPluginManager:
        manager = HostPluginManager()
        manager.add("beside", Beside(told), "odradek-beside", "1.0")
        return manager

    monkeypatch.setattr(command, "load_plugins", lambda _given: with_companion())

    status = run(["plugins", "--config", table(tmp_path, "")])

    assert status == 0
    assert capsys.readouterr().out.splitlines()[-1] == line


class Waiting:
    """A plugin with a destination."""

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> Waiting:
        return self

    def client_receiver(self) -> Waiting:
        return self

    def export_metrics(self, context: object, payload: object) -> None:
        raise NotImplementedError


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """A configuration without a subscription, and a plugin with a destination."""
    manager = HostPluginManager()
    manager.add("sink", Waiting(), "odradek-sink", "1.0")
    manager.add("labels", Labels(), "odradek-labels", "1.2.3")
    monkeypatch.setattr(command, "load_plugins", lambda _given=None: manager)
    return f'data.dir = "{tmp_path}"\nplugins.labels.team = "x"\n'


def test_a_destination_without_a_subscription_waits(
    waiting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(["plugins", "--config", table(tmp_path, waiting)])
    waits, command = capsys.readouterr().out.splitlines()[-2:]

    run(["plugins", "--json", "--config", table(tmp_path, waiting)])

    labels, sink = map(json.loads, capsys.readouterr().out.splitlines())
    assert waits == "no subscription: clients are told to push nothing (waiting: sink)"
    assert command == (
        "create one: odradek client-metrics --bootstrap-server 127.0.0.1:9092 "
        "--alter --name all --metrics '*' --interval 10000"
    )
    assert sink["waiting"] == "no subscription: clients are told to push nothing"
    assert "waiting" not in labels
    assert [path.name for path in tmp_path.iterdir()] == ["odradek.toml"]


def test_a_terminal_shows_that_a_destination_waits(
    waiting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    run(["plugins", "--config", table(tmp_path, waiting)])

    assert "no subscription: clients are told to push nothing (waiting: sink)" in capsys.readouterr().out


@pytest.mark.parametrize("place", ["file", "stored"])
def test_a_destination_with_a_subscription_does_not_wait(
    place: str, waiting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if place == "file":
        waiting += 'subscriptions.all.metrics = ["*"]\n'
    else:
        store = MetadataStore(tmp_path / "metadata.db")
        store.put_resource(ResourceType.CLIENT_METRICS, "all", {"metrics": "*"})

    run(["plugins", "--config", table(tmp_path, waiting)])

    assert "no subscription" not in capsys.readouterr().out
    if place == "stored":
        store.close()


def test_the_next_start_removes_a_subscription_that_is_no_longer_in_the_file(
    waiting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = MetadataStore(tmp_path / "metadata.db")
    store.put_resource(ResourceType.CLIENT_METRICS, "all", {"metrics": "*"})
    store.put_value(FROM_FILE, '["all"]')
    store.close()

    run(["plugins", "--config", table(tmp_path, waiting)])

    assert "no subscription" in capsys.readouterr().out


def test_a_metadata_file_that_cannot_be_read_says_nothing_about_subscriptions(
    waiting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metadata.db").write_text("no database" * 100)

    status = run(["plugins", "--config", table(tmp_path, waiting)])

    assert (status, "no subscription" in capsys.readouterr().out) == (0, False)


def test_without_a_configuration_companions_are_not_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    manager = HostPluginManager()
    manager.add("beside", Beside(None), "odradek-beside", "1.0")
    monkeypatch.setattr(command, "load_plugins", lambda _given=None: manager)

    run(["plugins", "--json"])

    assert "status" not in json.loads(capsys.readouterr().out)
