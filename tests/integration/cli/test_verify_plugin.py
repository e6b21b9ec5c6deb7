"""``odradek verify-plugin``: results that a user can act on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from odradek.cli import verify_plugin
from odradek.cli.main import FAILED, UNUSABLE, run
from odradek.hosting.plugin_manager import HostPluginManager, load_plugins
from odradek.plugin import ClientTelemetryPayload, PluginConfig, RequestContext, hookimpl
from odradek.testing.contracts.rule import Verdict

pytestmark = pytest.mark.ci

STUCK = """
import asyncio, time
from odradek.plugin import hookimpl

class Stuck:
    async def start(self): await asyncio.to_thread(time.sleep, 3600)
    async def deliver(self, batch): ...
    async def close(self): ...

@hookimpl
def odradek_forwarder(config):
    return Stuck()
"""


class Slow:
    """Its own receiver."""

    def __init__(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms

    def client_receiver(self) -> Slow:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        print("I was called")
        time.sleep(self.delay_ms / 1000)


class SlowPlugin:
    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> Slow:
        return Slow(config.integer("delay.ms", 0))


class TwoForwarders:
    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> Any:
        return {"one": Nothing(), "two": Nothing()}


class Nothing:
    async def start(self) -> None: ...
    async def deliver(self, batch: Any) -> None: ...
    async def close(self) -> None: ...


class Buggy:
    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> Any:
        return Fails()


class Fails(Nothing):
    async def deliver(self, batch: Any) -> None:
        teams: dict[str, str] = {}
        for _ in batch:
            teams["missing"]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    """Make the plugin appear as installed by pip."""

    def added(name: str, plugin: object) -> None:
        def load(requested: Mapping[str, object]) -> HostPluginManager:
            manager = load_plugins(requested)
            manager.add(name, plugin, "test", "1.0")
            return manager

        monkeypatch.setattr(verify_plugin, "load_plugins", load)
        # on a busy machine a slow plugin does not hang: the command would end the process, and all tests with
        # it
        monkeypatch.setattr(verify_plugin, "LIMIT_S", 100)

    return added


def test_a_plugin_that_follows_the_rules_passes(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("slow", SlowPlugin())

    status = run(["verify-plugin", "slow"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0] == "slow (receiver)"
    assert lines[1].split() == ["R1-returns-in-time", "passed"]
    assert lines[4] == "  R4-closes-unused       skipped  it has no close method"
    assert lines[-2] == "slow: 11 passed, 0 failed, 7 skipped"
    assert not [line for line in lines if "I was called" in line]


def test_a_bug_in_deliver_is_told_with_its_line(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("buggy", Buggy())

    status = run(["verify-plugin", "buggy"])

    lines = capsys.readouterr().out.splitlines()
    bug = Fails.deliver.__code__.co_firstlineno + 3
    assert status == FAILED
    assert lines[1].split(maxsplit=2) == [
        "R1-returns-in-time",
        "failed",
        f"deliver raised KeyError: 'missing' ({__file__}:{bug} in deliver), "
        "expected Retry, Reject or no exception",
    ]


def test_each_rule_can_be_an_object(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("slow", SlowPlugin())

    status = run(["verify-plugin", "slow", "--json"])

    streams = capsys.readouterr()
    rows = [json.loads(line) for line in streams.out.splitlines()]
    assert status == 0
    assert len(rows) == 18
    assert rows[3] == {
        "name": "slow",
        "kind": "receiver",
        "rule": "R4-closes-unused",
        "outcome": "skipped",
        "reason": "it has no close method",
    }
    assert streams.err.startswith("slow (receiver)\nslow: 11 passed, 0 failed, 7 skipped\n")


def test_a_blocking_plugin_fails_with_the_text_of_the_rule(
    install: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install("slow", SlowPlugin())
    monkeypatch.setenv("COLUMNS", "80")

    status = run(["verify-plugin", "slow", "--set", "delay.ms=8"])

    shown = capsys.readouterr()
    assert status == FAILED
    assert "R1-returns-in-time     failed   export_metrics took " in shown.out
    assert "the budget is 5 ms: it blocks the whole host" in shown.out
    paragraph = shown.out[shown.out.index("\nR1-returns-in-time\n") :]
    assert "  Broken by: a blocking socket, `time.sleep`, a lock held during a request." in paragraph
    assert "Put the push into a bounded queue" in " ".join(paragraph.split())
    assert max(map(len, paragraph.splitlines())) <= 80
    assert shown.err == "slow breaks the contract: R1-returns-in-time\n"
    assert ".md" not in shown.out + shown.err


class LosesItsThread:
    """Its own receiver. The thread of the first object that gets a push dies once it is told to."""

    def __init__(self, told: threading.Event, dying: threading.Lock) -> None:
        self.told = told
        self.dying = dying
        self.pushed = threading.Event()
        threading.Thread(target=self.send, name="sender", daemon=True).start()

    def client_receiver(self) -> LosesItsThread:
        return self

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        self.pushed.set()

    def send(self) -> None:
        self.pushed.wait()
        if self.dying.acquire(blocking=False):
            self.told.wait()
            raise ValueError("not a push")


class ThreadPlugin:
    def __init__(self, told: threading.Event) -> None:
        self.told = told
        self.dying = threading.Lock()

    @hookimpl
    def odradek_client_telemetry(self, config: PluginConfig) -> LosesItsThread:
        return LosesItsThread(self.told, self.dying)


@pytest.mark.parametrize(
    ("at_once", "text"),
    [(True, "failed   the thread sender died: ValueError: not a push ("), (False, "0 failed")],
    ids=["at once", "after the rule"],
)
def test_a_plugin_whose_thread_dies_fails(
    install: Callable[[str, object], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    at_once: bool,
    text: str,
) -> None:
    told, line = threading.Event(), verify_plugin.line
    install("loses", ThreadPlugin(told))
    if at_once:
        told.set()

    def line_of_a_rule(verdict: Verdict) -> str:
        told.set()
        return line(verdict)

    monkeypatch.setattr(verify_plugin, "line", line_of_a_rule)

    status = run(["verify-plugin", "loses"])

    shown = capsys.readouterr()
    assert status == FAILED
    assert text in shown.out
    assert "loses breaks the contract: " in shown.err
    assert at_once == ("\nThreads\n  No thread of the plugin ends" in shown.out)
    assert at_once or "after a rule, the thread sender died: ValueError: not a push" in shown.err


def test_each_forwarder_of_a_plugin_is_checked(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("pair", TwoForwarders())

    status = run(["verify-plugin", "pair"])

    titles = [line for line in capsys.readouterr().out.splitlines() if line.endswith("(forwarder)")]
    assert status == 0
    assert titles == ["pair.one (forwarder)", "pair.two (forwarder)"]


def test_an_unknown_key_is_reported(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("slow", SlowPlugin())

    status = run(["verify-plugin", "slow", "--set", "delay=8"])

    assert status == UNUSABLE
    assert "plugins.slow.delay: unknown key" in capsys.readouterr().err


def test_a_plugin_that_is_not_installed_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["verify-plugin", "nobody"])

    assert status == UNUSABLE
    assert "plugins.nobody: no such plugin is installed" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["delay", "=8"])
def test_a_key_without_a_value_is_reported(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["verify-plugin", "stdout", "--set", text])

    assert status == UNUSABLE
    assert f"expected --set key=value, found {text!r}" in capsys.readouterr().err


def test_a_hanging_plugin_is_named_and_the_command_ends(tmp_path: Path) -> None:
    (tmp_path / "stuck.py").write_text(STUCK)
    (tmp_path / "stuck-1.0.dist-info").mkdir()
    (tmp_path / "stuck-1.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: stuck\nVersion: 1.0\n"
    )
    (tmp_path / "stuck-1.0.dist-info/entry_points.txt").write_text("[odradek]\nstuck = stuck\n")
    sources = os.pathsep.join([str(tmp_path), str(Path(__file__).parents[3] / "host/src")])
    program = "from odradek.cli import main, verify_plugin as it; it.LIMIT_S = 0.5; main.main()"

    finished = subprocess.run(
        [sys.executable, "-c", program, "verify-plugin", "stuck"],
        env=os.environ | {"PYTHONPATH": sources},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert finished.returncode == FAILED, finished.stderr
    assert "failed   still running after 0.5 s: it hangs in " in finished.stdout
    assert "R2-changes-nothing     skipped  not tried because an earlier rule hangs" in finished.stdout
    assert "stuck: 0 passed, 1 failed, 17 skipped" in finished.stdout
    assert "stuck breaks the contract" in finished.stderr
