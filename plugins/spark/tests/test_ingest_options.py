"""The options of ``ingest``, ``run`` and ``replay``, and errors that are found before Spark starts."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result
from spark_dataset import Push, ingested
from spark_topics import TOPIC

from odradek.testing import RunningHost
from odradek_spark.cli import session
from odradek_spark.cli.ingest import settings_from
from odradek_spark.cli.main import spark
from odradek_spark.cli.session import NoSpark
from odradek_spark.ingest import query, run
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.pipeline_settings import PipelineSettings

NOBODY = "127.0.0.1:1"


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Distinguishes options that reach Spark from refused ones."""

    def started(*arguments: object) -> object:
        raise NoSpark("it would start")

    monkeypatch.setattr(session, "opened", started)


def called(command: str, bootstrap: str, dataset: object, *options: str) -> Result:
    return CliRunner().invoke(
        spark,
        [command, "--bootstrap-server", bootstrap, "--topic", TOPIC, "--dataset", str(dataset), *options],
    )


def given(*options: str, command: str = "ingest") -> Any:
    context = spark.commands[command].make_context(
        command, ["--bootstrap-server", "b:1", "--dataset", "d", *options]
    )
    return settings_from(PipelineSettings if command == "run" else IngestSettings, dict(context.params))


def test_options_become_settings() -> None:
    settings = given(
        *("--max-bytes-per-trigger", "7", "--max-payload-bytes", "9"),
        *("--allow-data-loss", "--starting-offsets", "latest", "--checkpoint", "c"),
    )

    assert (settings.max_bytes_per_trigger, settings.max_payload_bytes) == (7, 9)
    assert (settings.fail_on_data_loss, settings.starting_offsets) == (False, "latest")
    assert settings.checkpoint_location == "c"


def test_a_batch_can_wait_for_more_data() -> None:
    assert given("--min-bytes-per-trigger", "5", command="run").min_bytes_per_trigger == 5


@pytest.mark.parametrize("command", ["ingest", "run", "replay"])
def test_valid_options_reach_spark(command: str, host: RunningHost, tmp_path: Path) -> None:
    ingested(str(tmp_path), [Push(client=1, value=1.0)])

    result = called(command, host.bootstrap, tmp_path)

    assert (result.exit_code, result.stderr) == (1, "Error: it would start\n")


@pytest.mark.parametrize(
    ("options", "status", "line"),
    [
        (("ingest", "--writer", "spark"), 2, "No such option"),
        (("ingest", "--topic", "nope"), 1, "topic nope: Broker: Unknown topic or partition"),
        (("run", "--topic", "nope"), 1, "topic nope: Broker: Unknown topic or partition"),
        (("replay",), 1, "no such table: check the path, and ingest into it first"),
        (("replay", "--since", "1h", "--range", "0:1-2"), 2, "--range and --since: expected only one"),
        (("replay", "--since", "soon"), 2, "expected 90s, 30m, 2h, 7d"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_invalid_options_are_reported_in_one_line(
    options: tuple[str, ...], status: int, line: str, host: RunningHost, tmp_path: Path
) -> None:
    command, *rest = options

    result = called(command, host.bootstrap, tmp_path, *rest)

    assert result.exit_code == status
    assert line in result.stderr
    assert "it would start" not in result.stderr
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("command", ["ingest", "run"])
def test_a_foreign_folder_is_refused(command: str, host: RunningHost, tmp_path: Path) -> None:
    (tmp_path / "diary.txt").touch()

    result = called(command, host.bootstrap, tmp_path)

    assert result.exit_code == 1
    assert (
        result.stderr == f"Error: {tmp_path} is not a dataset, it holds diary.txt: choose an empty folder\n"
    )


def test_a_folder_that_cannot_be_created_is_reported(host: RunningHost) -> None:
    result = called("ingest", host.bootstrap, "/proc/tables")

    assert result.exit_code == 1
    assert result.stderr == "Error: /proc/tables/points: cannot be created: No such file or directory\n"


@pytest.mark.parametrize("command", ["ingest", "run"])
def test_a_signal_ends_it_cleanly_although_spark_handles_it(
    command: str, host: RunningHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    def as_spark_does(*arguments: object) -> object:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return SimpleNamespace(stop=lambda: None, interruptAll=lambda: None)

    def interrupted(*arguments: object, stop: threading.Event, **options: object) -> None:
        signal.raise_signal(signal.SIGINT)
        ended.append(stop.is_set())

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    monkeypatch.setattr(session, "opened", as_spark_does)
    monkeypatch.setattr(run, "run_ingest", interrupted)
    try:
        result = called(command, host.bootstrap, tmp_path / "tables")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

    assert (result.exit_code, ended) == (0, [True])


def test_a_dataset_that_does_not_exist_is_not_verified(tmp_path: Path) -> None:
    result = CliRunner().invoke(spark, ["verify", "--dataset", str(tmp_path)])

    assert result.exit_code == 1
    assert (
        result.stderr
        == f"Error: {tmp_path}/pushes: no such table: check the path, and ingest into it first\n"
    )


def test_invalid_rules_are_reported_first(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("rule = 5")

    result = CliRunner().invoke(
        spark, ["run", "--bootstrap-server", NOBODY, "--dataset", str(tmp_path), "--rules-file", str(rules)]
    )

    assert result.exit_code == 1
    assert result.stderr.startswith(f"Error: {rules}: ")


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (("ingest", "--once"), "Error: topic telemetry: 127.0.0.1:1: "),
        (("ingest",), "; waiting\nError: it would start"),
        (("run",), "; waiting\nError: it would start"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_unreachable_broker_is_waited_for_except_with_once(
    options: tuple[str, ...], line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query, "LOOK_S", 0.2)
    command, *rest = options

    result = called(command, NOBODY, tmp_path, *rest)

    assert result.exit_code == 1
    assert line in result.stderr


@pytest.mark.parametrize("command", sorted(spark.commands))
def test_every_command_has_a_description(command: str) -> None:
    result = CliRunner().invoke(spark, [command, "--help"], terminal_width=200)

    assert result.exit_code == 0
    options = [each for each in spark.commands[command].params if each.param_type_name == "option"]
    assert [each.opts for each in options if not getattr(each, "help", "")] == []
    assert spark.commands[command].help
