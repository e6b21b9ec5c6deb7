"""``odradek verify-plugin``: a verdict that a person can act on."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from odradek.cli import verify_plugin
from odradek.cli.main import FAILED, UNUSABLE, run
from odradek.plugin import ClientTelemetryPayload, PluginConfig, RequestContext, hookimpl
from odradek.server.plugins import HostPluginManager, load_plugins


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


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, object], None]:
    """As if it had been installed by pip."""

    def added(name: str, plugin: object) -> None:
        def load() -> HostPluginManager:
            manager = load_plugins()
            manager.add(name, plugin, "test", "1.0")
            return manager

        monkeypatch.setattr(verify_plugin, "load_plugins", load)

    return added


def test_a_plugin_that_keeps_the_rules_passes(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("slow", SlowPlugin())

    status = run(["verify-plugin", "slow"])

    lines = capsys.readouterr().out.splitlines()
    assert status == 0
    assert lines[0] == "slow (receiver)"
    assert lines[1].split() == ["R1-returns-in-time", "passed"]
    assert lines[4] == "  R4-closes-unused       skipped  it has no method close"
    assert lines[-2] == "slow: 10 passed, 0 failed, 7 skipped"
    assert not [line for line in lines if "I was called" in line]


def test_a_plugin_that_blocks_fails_and_is_told_where_to_read(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("slow", SlowPlugin())

    status = run(["verify-plugin", "slow", "--set", "delay.ms=8"])

    shown = capsys.readouterr()
    assert status == FAILED
    assert "R1-returns-in-time     failed   export_metrics took " in shown.out
    assert "the budget is 5 ms; the host stands still" in shown.out
    assert "receiver-contract.md, #r1-returns-in-time" in shown.err


def test_each_forwarder_of_a_plugin_is_checked(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("pair", TwoForwarders())

    status = run(["verify-plugin", "pair"])

    titles = [line for line in capsys.readouterr().out.splitlines() if line.endswith("(forwarder)")]
    assert status == 0
    assert titles == ["pair.one (forwarder)", "pair.two (forwarder)"]


def test_a_key_that_the_plugin_does_not_know_is_told(
    install: Callable[[str, object], None], capsys: pytest.CaptureFixture[str]
) -> None:
    install("slow", SlowPlugin())

    status = run(["verify-plugin", "slow", "--set", "delay=8"])

    assert status == UNUSABLE
    assert "plugins.slow.delay: unknown key" in capsys.readouterr().err


def test_a_plugin_that_is_not_installed_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["verify-plugin", "nobody"])

    assert status == UNUSABLE
    assert "plugins.nobody: no such plugin is installed" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["delay", "=8"])
def test_a_key_without_a_value_is_told(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["verify-plugin", "stdout", "--set", text])

    assert status == UNUSABLE
    assert f"expected --set key=value, found {text!r}" in capsys.readouterr().err
