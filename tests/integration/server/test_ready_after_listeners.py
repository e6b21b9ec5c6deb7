"""A host is ready once its plugins listen, or have tried to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import Forwarder, Intake, PluginConfig, Source, TelemetryRecord, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host


class Slow:
    """A source or a forwarder whose listener opens when a test says so."""

    listens = "127.0.0.1:9464"

    def __init__(self, *, fails: bool) -> None:
        self.fails = fails
        self.asked, self.go = threading.Event(), threading.Event()

    async def opened(self) -> None:
        self.asked.set()
        await asyncio.to_thread(self.go.wait, 20)
        if self.fails:
            raise OSError("address in use")


class SlowSource(Slow):
    async def run(self, intake: Intake) -> None:
        await self.opened()
        intake.listening()
        await asyncio.Event().wait()

    def lag(self) -> int | None:
        return None

    @hookimpl
    def odradek_source(self, config: PluginConfig) -> Source:
        return self


class SlowForwarder(Slow):
    async def start(self) -> None:
        await self.opened()

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        return

    async def close(self) -> None:
        return

    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> Forwarder:
        return self


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("kind", [SlowSource, SlowForwarder])
def test_a_start_ends_when_the_listener_of_a_plugin_is_open(
    tmp_path: Path, kind: type[SlowSource | SlowForwarder], fails: bool
) -> None:
    plugin, plugins = kind(fails=fails), HostPluginManager()
    plugins.add("slow", plugin, "slow", "1")
    config = load_config(None, ["listeners=PLAINTEXT://127.0.0.1:0", f"data.dir={tmp_path}"], ["slow"])

    async def started() -> None:
        host = Host(config, plugins=plugins)
        try:
            starting = asyncio.create_task(host.start())
            assert await asyncio.to_thread(plugin.asked.wait, 20)
            async with asyncio.timeout(20):
                while host.listeners[0].acceptor is None:
                    await asyncio.sleep(0.01)
            assert not starting.done()
            plugin.go.set()
            await asyncio.wait_for(starting, 20)
        finally:
            plugin.go.set()
            await host.stop()

    asyncio.run(started())
