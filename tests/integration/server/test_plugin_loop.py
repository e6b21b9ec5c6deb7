"""Tasks and callbacks of a plugin's loop that die are told with plugin, file and line."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence

import pytest

from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.plugin import TelemetryRecord
from support.waiting import wait_until


class Poller:
    """A forwarder with work of its own."""

    def __init__(self, begin: Callable[[Poller], object]) -> None:
        self.begin = begin
        self.began: object = None
        self.started = False

    async def start(self) -> None:
        self.began = self.begin(self)
        await asyncio.sleep(0.01)
        self.started = True

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None: ...

    async def close(self) -> None: ...

    async def poll(self) -> None:
        raise KeyError("team")

    def look(self) -> None:
        raise KeyError("team")

    async def wait(self) -> None:
        await asyncio.Event().wait()


def forgotten(plugin: Poller) -> None:
    asyncio.get_running_loop().create_task(plugin.poll())


def kept(plugin: Poller) -> asyncio.Task[None]:
    return asyncio.get_running_loop().create_task(plugin.poll())


def called(plugin: Poller) -> None:
    asyncio.get_running_loop().call_soon(plugin.look)


def place(function: Callable[..., object]) -> str:
    return f"({__file__}:{function.__code__.co_firstlineno + 1} in {function.__name__})"


@pytest.mark.parametrize(
    ("begin", "told"),
    [
        (forgotten, f"plugin mine: its task Poller.poll died: KeyError: 'team' {place(Poller.poll)}"),
        (kept, f"plugin mine: its task Poller.poll died: KeyError: 'team' {place(Poller.poll)}"),
        (called, f"plugin mine: its callback died: KeyError: 'team' {place(Poller.look)}"),
    ],
)
def test_work_that_dies_is_told(
    begin: Callable[[Poller], object], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Poller(begin)
    runner = ForwarderRunner("mine", plugin, ForwarderSettings())
    runner.start()
    wait_until(lambda: plugin.started, runner.stats)
    runner.stop(5.0)
    plugin.began = None
    gc.collect()

    assert caplog.messages == [f"{told}; what it did is not done until the next start"]


def test_work_that_waits_at_the_stop_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    plugin = Poller(lambda plugin: asyncio.get_running_loop().create_task(plugin.wait()))
    runner = ForwarderRunner("mine", plugin, ForwarderSettings())
    runner.start()
    wait_until(lambda: plugin.started, runner.stats)
    runner.stop(5.0)
    plugin.began = None
    gc.collect()

    assert caplog.messages == []
