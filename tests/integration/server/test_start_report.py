"""``odradek serve`` says what it is, checks a configuration without a trace, and serves without a stdout."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.hosts import EVERYTHING, LOOPBACK, ServeProcess, about_itself, serving
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

ODRADEK = (sys.executable, "-m", "odradek")
SERVE = (*ODRADEK, "serve")
NO_SUBSCRIPTION = "no subscription: clients are told to push nothing"
BROKEN = "import no_such_module\n"


@pytest.fixture
def broken_plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed plugin that cannot be imported."""
    folder = tmp_path / "site"
    about = folder / "census-1.0.dist-info"
    about.mkdir(parents=True)
    (folder / "census.py").write_text(BROKEN)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: census\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[odradek]\ncensus = census\n")
    monkeypatch.setenv("PYTHONPATH", f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")


def rows(serve: ServeProcess) -> dict[str, dict[str, Any]]:
    """The lines of a JSON log by message."""
    return {row["message"]: row for row in map(json.loads, serve.errors)}


def test_a_host_says_what_it_is(tmp_path: Path, broken_plugin: None) -> None:
    settings = ["plugins.otlp.endpoint=http://127.0.0.1:1", *EVERYTHING, "max.connections=77"]
    options = [part for setting in settings for part in ("--set", setting)]
    with serving(tmp_path / "data", "--log-format", "json", "--log-level", "info", *options) as serve:
        serve.terminate()

    said = rows(serve)
    assert all({"time", "level", "logger"} <= row.keys() for row in said.values())
    assert said["odradek 0.1.0"]["log_level"] == "info"
    assert said["listening"]["listeners"] == [f"PLAINTEXT://{serve.bootstrap}"]
    assert said["data"]["data.dir"] == str(tmp_path / "data")
    assert "otlp" in said["plugins"]["active"]
    assert "kafka" in said["plugins"]["idle"]
    assert "stdout" in said["plugins"]["disabled"]
    (broken,) = said["plugins"]["broken"]
    assert broken.startswith("census (ModuleNotFoundError: No module named 'no_such_module' (")
    assert "census.py:1); install what the plugin needs for " in broken
    assert (said["subscriptions"]["in_force"], said["subscriptions"]["names"]) == (1, ["all"])
    limits = [row for row in map(json.loads, serve.errors) if row["message"] == "limit"]
    assert limits[0]["max.connections"] == 77
    assert {"telemetry.max.bytes": 1_048_576} in [
        {key: value for key, value in row.items() if "." in key} for row in limits
    ]


def test_the_limits_fit_a_terminal_in_units_for_people(tmp_path: Path) -> None:
    sizes = ("queued.max.request.bytes=3159562752", "queued.max.response.bytes=3221225472")
    settings = (part for setting in (*sizes, "max.connections=448") for part in ("--set", setting))
    with serving(tmp_path, *settings) as serve:
        serve.terminate()

    lines = [line for line in serve.errors if " limit " in line]
    assert [line.partition(" limit ")[2] for line in lines] == [
        "max.connections=448",
        "socket.request.max.bytes=100MiB",
        "telemetry.max.bytes=1MiB",
        "queued.max.request.bytes=2.9GiB",
        "queued.max.response.bytes=3GiB",
    ]
    assert max(map(len, lines)) <= 80


def test_a_host_without_a_subscription_says_so(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        serve.terminate()

    assert any("no subscription: clients are told to push nothing" in line for line in serve.errors)
    assert all(" INFO " in line for line in about_itself(serve.errors))


def test_a_host_whose_destination_waits_for_a_subscription_warns(tmp_path: Path) -> None:
    endpoint = "plugins.otlp.endpoint=http://127.0.0.1:1"
    with serving(tmp_path, "--log-format", "json", "--set", endpoint) as serve:
        serve.terminate()

    said = rows(serve)[NO_SUBSCRIPTION]
    assert (said["level"], said["waiting"]) == ("warning", ["otlp"])
    assert said["create"] == (
        f"odradek client-metrics --bootstrap-server {serve.bootstrap} "
        "--alter --name all --metrics '*' --interval 10000"
    )


def test_the_command_that_the_warning_names_creates_a_subscription(tmp_path: Path) -> None:
    with serving(tmp_path, "--log-format", "json") as serve:
        wait_until(lambda: NO_SUBSCRIPTION in rows(serve), lambda: serve.errors)
        _, *arguments = shlex.split(rows(serve)[NO_SUBSCRIPTION]["create"])
        done = subprocess.run([*ODRADEK, *arguments], capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout == "Altered client metrics config for all.\n"


def test_a_checked_configuration_leaves_no_trace(tmp_path: Path) -> None:
    settings = (f"data.dir={tmp_path / 'data'}", f"listeners={LOOPBACK}", *EVERYTHING)
    options = [part for setting in settings for part in ("--set", setting)]

    done = subprocess.run([*SERVE, "--check", *options], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "configuration is valid"
    assert {"plugin enrich is active", "subscription all"} <= set(done.stdout.splitlines())
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "setting",
    [
        "no.such.key=1",
        "plugins.otlp.timeout.ms=soon",
        "plugins.nowhere.a=1",
        "plugins.otlp.temporality=sums",
        "plugins.prometheus.totals.topic=totals",
        "subscriptions.s.match=client_id=[unclosed",
        "subscriptions.s.interval.ms=99",
    ],
)
def test_a_check_finds_what_a_start_would_refuse(tmp_path: Path, setting: str) -> None:
    options = ["--set", f"data.dir={tmp_path / 'data'}", "--set", "plugins.otlp.endpoint=http://x"]

    done = subprocess.run(
        [*SERVE, "--check", *options, "--set", setting], capture_output=True, text=True, check=False
    )

    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)
    assert setting.partition("=")[0].rpartition(".")[0] in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_host_serves_without_a_stdout(tmp_path: Path) -> None:
    options = ["--log-format", "json", "--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path}"]
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen([*SERVE, *options], stdout=full, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        for line in process.stderr:
            row = json.loads(line)
            if row["message"] == "listening":
                _, _, port = row["listeners"][0].rpartition(":")
            if row["message"] == "stdout cannot take the ready line":
                break
    with WireClient(("127.0.0.1", int(port))) as client:
        client.introduce()
    process.terminate()
    _, errors = process.communicate(timeout=60)

    (stopping,) = about_itself(errors.splitlines())
    assert (process.returncode, json.loads(stopping)["message"]) == (0, "stopping")
