"""Tasks and callbacks of a plugin's loop that die are told with plugin, file and line."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.plugin import TelemetryRecord
from support.telemetry_records import telemetry_record
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


class Delivering(Poller):
    """A forwarder whose ``deliver`` is given."""

    def __init__(self, deliver: Callable[[], Awaitable[object]]) -> None:
        super().__init__(lambda plugin: None)
        self.act = deliver

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> Any:
        return await self.act()


async def waiting() -> None:
    await asyncio.Event().wait()


async def answering() -> bool:
    return False


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (
            waiting,
            "destination of mine is down, trying again: CutOffError: took longer than 0.05 s "
            + place(waiting),
        ),
        (
            answering,
            "plugin mine: deliver returned False, and the batch counts as delivered; raise Retry or Reject "
            f"for what was not ({__file__}:{Delivering.deliver.__code__.co_firstlineno})",
        ),
    ],
)
def test_a_deliver_that_does_not_do_as_agreed_is_told(
    act: Callable[[], Awaitable[object]], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    settings = ForwarderSettings(deliver_timeout_ms=50, batch_max_age_ms=0)
    runner = ForwarderRunner("mine", Delivering(act), settings)
    runner.start()
    for _ in range(2):
        runner.offer(telemetry_record(b"a"))
        wait_until(lambda: told in caplog.messages, "the line")
        wait_until(lambda: act is waiting or not runner.stats().in_flight, runner.stats)
    runner.stop(5.0)

    assert caplog.messages.count(told) == 1


def test_a_thread_that_is_left_is_told_with_its_place(caplog: pytest.LogCaptureFixture) -> None:
    let_go, held = threading.Event(), threading.Event()

    async def hanging() -> None:
        held.set()
        let_go.wait()

    runner = ForwarderRunner("mine", Delivering(hanging), ForwarderSettings(batch_max_age_ms=0))
    runner.start()
    runner.offer(telemetry_record(b"a"))
    wait_until(held.is_set, runner.stats)
    runner.stop(0.05)
    let_go.set()

    line = hanging.__code__.co_firstlineno + 2
    told = f"plugin mine did not stop in 0.05 s, abandoning its thread ({__file__}:{line} in hanging)"
    assert told in caplog.messages


def test_work_that_waits_at_the_stop_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    plugin = Poller(lambda plugin: asyncio.get_running_loop().create_task(plugin.wait()))
    runner = ForwarderRunner("mine", plugin, ForwarderSettings())
    runner.start()
    wait_until(lambda: plugin.started, runner.stats)
    runner.stop(5.0)
    plugin.began = None
    gc.collect()

    assert caplog.messages == []
