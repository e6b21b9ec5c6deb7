"""Plugins that hang while the loop waits for them, and threads of plugins that die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting import watched_call
from odradek.hosting.active_plugin import activate
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.hosting.plugin_watch import PluginWatch
from odradek.plugin import ConfigError, PluginConfig, hookimpl
from odradek.process import limits
from odradek.testing import host_thread
from support.hosts import running_host
from support.spooling import FarSide
from support.waiting import wait_until

LONG_S = 0.05


def line_of(function: Callable[..., object], after: int) -> str:
    """The place of a line of a function of this file, as a message has it."""
    return f"{__file__}:{function.__code__.co_firstlineno + after} in {function.__name__}"


class Holding:
    """A plugin whose hook does not return before it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    @hookimpl
    def odradek_enricher(self, config: PluginConfig) -> None:
        while not self.let_go.is_set():
            time.sleep(0.001)


def manager_of(plugin: object) -> HostPluginManager:
    manager = HostPluginManager()
    manager.add("mine", plugin, "test", "1")
    return manager


def test_a_hook_that_hangs_is_told_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    plugin = Holding()
    manager = manager_of(plugin)

    def let_go() -> None:
        wait_until(lambda: caplog.messages, "the line")
        plugin.let_go.set()

    helper = threading.Thread(target=let_go)
    helper.start()
    with PluginWatch(manager.owner, LONG_S):
        activate(manager, {})
    helper.join()

    (told,) = caplog.messages
    assert told.startswith("plugin mine holds the event loop for more than 0.05 s (" + __file__)
    assert told.endswith(" in odradek_enricher); a second Ctrl-C or SIGTERM interrupts it")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_hook_that_hangs_is_interrupted_by_the_second_signal(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "AGAIN_S", 0.0)
    plugin = Holding()
    ended: list[ConfigError] = []

    async def main(_stop: asyncio.Event) -> None:
        helper = threading.Thread(target=interrupt_twice)
        helper.start()
        try:
            activate(manager_of(plugin), {})
        except ConfigError as error:
            ended.append(error)
        helper.join()

    def interrupt_twice() -> None:
        while not ended:
            os.kill(os.getpid(), number)
            time.sleep(0.01)

    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        limits.run(main)
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

    (error,) = ended
    assert str(error).startswith(f"plugins.mine: odradek_enricher raised KeyboardInterrupt ({__file__}:")
    assert str(error).endswith(" in odradek_enricher); it took too long")


HANGS = """from time import sleep
from odradek.plugin import hookimpl
@hookimpl
def odradek_enricher(config): sleep(300)
"""
IMPORT_HANGS = HANGS.replace("odradek_enricher(config): ", "odradek_enricher(config): ...\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "place"), [(HANGS, ":4 in odradek_enricher"), (IMPORT_HANGS, ":5")], ids=["hook", "import"]
)
def test_an_ephemeral_host_whose_start_hangs_is_ended_by_the_second_ctrl_c(
    text: str, place: str, tmp_path: Path
) -> None:
    file = tmp_path / "hangs.py"
    file.write_text(text)
    command = [sys.executable, "-m", "odradek", "serve", "--ephemeral", "--plugin", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = next(line for line in process.stderr if "holds the event loop" in line)
        for _ in range(100):
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGINT)
            time.sleep(0.3)

    assert f"({file}{place}); a second Ctrl-C or SIGTERM interrupts it" in told
    assert process.returncode in (130, -signal.SIGINT)  # the last one may have come while Python ended


def test_a_loop_that_turns_is_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        watch = PluginWatch(manager_of(Holding()).owner, 0.01)
        watch.start()
        await asyncio.sleep(0.05)
        watch.stop()

    asyncio.run(main())

    assert not caplog.messages


def poll() -> None:
    raise ValueError("no answer")


def test_a_thread_of_a_plugin_that_dies_is_told_with_its_line(caplog: pytest.LogCaptureFixture) -> None:
    before = threading.excepthook
    with PluginWatch(manager_of(Holding()).owner):
        thread = threading.Thread(target=poll, name="poller")
        thread.start()
        thread.join()

    assert threading.excepthook is before
    (line,) = caplog.records
    assert line.getMessage() == (
        f"plugin mine: its thread poller died: ValueError: no answer ({line_of(poll, 1)}); "
        "what it did is not done until the next start"
    )
    assert line.exc_info is not None


def test_other_threads_that_die_are_not_told_of(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[threading.ExceptHookArgs] = []
    before, threading.excepthook = threading.excepthook, seen.append
    try:
        with PluginWatch(HostPluginManager().owner):
            thread = threading.Thread(target=poll)
            thread.start()
            thread.join()
    finally:
        threading.excepthook = before

    assert len(seen) == 1
    assert not caplog.messages


class SlowStart(FarSide):
    """A forwarder whose start waits, or blocks its thread."""

    def __init__(self, blocks: bool) -> None:
        super().__init__()
        self.blocks = blocks
        self.let_go = threading.Event()

    async def start(self) -> None:
        while not self.let_go.is_set():
            if self.blocks:
                time.sleep(0.001)
            await asyncio.sleep(0 if self.blocks else 0.001)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_slow_start_is_told_with_its_line(
    blocks: bool, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watched_call, "LONG_S", LONG_S)
    forwarder = SlowStart(blocks)
    runner = ForwarderRunner("mine", forwarder, ForwarderSettings())
    runner.start()
    try:
        wait_until(lambda: caplog.messages, runner.stats)
    finally:
        forwarder.let_go.set()
        runner.stop(5.0)

    told = caplog.messages[0]
    assert told.startswith(f"plugin mine: start has not returned after 0.05 s ({__file__}:")
    assert told.endswith(" in start); pushes wait for it, its time limit is 30 s")


def test_a_host_of_a_test_that_does_not_start_says_where_it_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_thread, "START_TIMEOUT_S", 0.5)
    monkeypatch.setattr(host_thread, "LEAVE_TIMEOUT_S", 0.01)
    plugin = Holding()
    host = running_host(tmp_path, plugins=manager_of(plugin))
    try:
        with pytest.raises(TimeoutError) as caught:
            host.__enter__()
    finally:
        plugin.let_go.set()

    assert str(caught.value).startswith(f"the host has not started after 0.5 s ({__file__}:")
    assert str(caught.value).endswith(" in odradek_enricher)")
    left = next(each for each in threading.enumerate() if each.name == "odradek-host")
    left.join(20)
    assert not left.is_alive()
