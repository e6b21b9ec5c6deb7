"""Companion processes of a host: started, restarted, and stopped with all their child processes."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from odradek.hosting.companions import CompanionRunner, address_for
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import PluginConfig, hookimpl
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.waiting.clock import SystemClock
from support.certificates import Files

pytestmark = pytest.mark.ci

TIME_LIMIT_S = 10.0
APPENDS = "import os, sys; open(sys.argv[1], 'a').write(f'{os.getpid()} {sys.argv[2]}\\n'); "
"""Each start writes its process id and its address."""
WAITS = APPENDS + "sys.stdin.read()"
ENDS = APPENDS + "sys.exit(3)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + APPENDS + "sys.stdin.read()"
DEAF_AND_BLIND = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + APPENDS + "time.sleep(60)"
)
A_CHILD = (
    "import os, sys, time; child = os.fork(); "
    "child or time.sleep(60); open(sys.argv[1], 'a').write(f'{child} {sys.argv[2]}\\n'); sys.stdin.read()"
)


class Program:
    """A companion that runs Python code."""

    def __init__(self, code: str, file: Path) -> None:
        self.code = code
        self.file = file

    def command(self, bootstrap_servers: str) -> Sequence[str]:
        return [sys.executable, "-c", self.code, str(self.file), bootstrap_servers]

    def status(self, bootstrap_servers: str) -> Mapping[str, object]:
        return {}

    def starts(self) -> list[tuple[int, str]]:
        """The process id and address of each start."""
        lines = self.file.read_text().splitlines() if self.file.exists() else []
        return [(int(line.split()[0]), line.split()[1]) for line in lines]

    async def until(self, wanted: Callable[[list[tuple[int, str]]], bool]) -> list[tuple[int, str]]:
        """Wait until the starts are as expected; return them."""
        async with asyncio.timeout(TIME_LIMIT_S):
            while not wanted(self.starts()):
                await asyncio.sleep(0.02)
        return self.starts()


class Plugin:
    def __init__(self, program: Program) -> None:
        self.program = program

    @hookimpl
    def odradek_companion(self, config: PluginConfig) -> Program:
        return self.program


def runs(pid: int) -> bool:
    """Whether the process exists and is not a zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


async def gone(pid: int) -> None:
    """Wait until a killed process is gone."""
    async with asyncio.timeout(TIME_LIMIT_S):
        while runs(pid):
            await asyncio.sleep(0.02)


def has_ipv6() -> bool:
    """Whether this machine has an address of that family."""
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        pytest.param("[::1]", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 on this machine")),
    ],
)
def test_a_host_runs_it_as_long_as_it_runs(tmp_path: Path, address: str) -> None:
    program = Program(WAITS, tmp_path / "starts")
    plugins = HostPluginManager()
    plugins.add("beside", Plugin(program), "odradek-beside", "1.0")
    config = load_config(None, [f"listeners=PLAINTEXT://{address}:0", f"data.dir={tmp_path}"])

    async def scenario() -> tuple[list[tuple[int, str]], int]:
        host = Host(config, plugins=plugins)
        try:
            await host.start()
            return await program.until(bool), host.listeners[0].bound_port
        finally:
            await host.stop()

    starts, port = asyncio.run(scenario())

    assert [address for _, address in starts] == [f"{address}:{port}"]
    assert not runs(starts[0][0])


def test_a_bug_in_its_command_is_told_with_its_traceback_and_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Sick(Program):
        bugs = 2

        def command(self, bootstrap_servers: str) -> Sequence[str]:
            if self.bugs:
                self.bugs -= 1
                raise KeyError("team")
            return super().command(bootstrap_servers)

    program = Sick(WAITS, tmp_path / "starts")
    runner = CompanionRunner("beside", program, SystemClock(), backoff_s=0.01)

    async def scenario() -> None:
        runner.start([("PLAINTEXT", "here:1")])
        await program.until(bool)
        await runner.stop(1.0)

    asyncio.run(scenario())

    (told,) = [
        record for record in caplog.records if "plugin beside failed: KeyError: 'team'" in record.getMessage()
    ]
    assert told.exc_info is not None
    assert told.exc_info[0] is KeyError
    whys = [vars(record)["why"] for record in caplog.records if "restarting" in record.getMessage()]
    assert whys == ["companion: its command() raised KeyError: 'team'"] * 2


def test_a_command_that_is_one_text_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    class OneText(Program):
        def command(self, bootstrap_servers: str) -> Sequence[str]:
            return "sleep 60"

    runner = CompanionRunner("beside", OneText("", tmp_path / "starts"), SystemClock(), backoff_s=0.01)

    async def scenario() -> None:
        runner.start([("PLAINTEXT", "here:1")])
        while not runner.stats.failed:
            await asyncio.sleep(0.01)
        await runner.stop(1.0)

    asyncio.run(asyncio.wait_for(scenario(), TIME_LIMIT_S))

    told = "command returned 'sleep 60', expected a list of texts: the program and its arguments"
    place = f"({__file__}:{OneText.command.__code__.co_firstlineno})"
    assert any(told in message and place in message for message in caplog.messages)


def test_it_is_restarted_when_it_ends(tmp_path: Path) -> None:
    program = Program(ENDS, tmp_path / "starts")
    runner = CompanionRunner("beside", program, SystemClock(), backoff_s=0.01)

    async def scenario() -> list[tuple[int, str]]:
        runner.start([("PLAINTEXT", "here:1")])
        starts = await program.until(lambda found: len(found) >= 3)
        await runner.stop(1.0)
        return starts

    starts = asyncio.run(scenario())

    assert len({pid for pid, _ in starts}) == len(starts)
    assert runner.backoff_s >= 0.04


def test_a_companion_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    program = Program(DEAF_AND_BLIND, tmp_path / "starts")
    runner = CompanionRunner("beside", program, SystemClock())

    async def scenario() -> int:
        runner.start([("PLAINTEXT", "here:1")])
        ((pid, _),) = await program.until(bool)
        await runner.stop(0.2)
        return pid

    pid = asyncio.run(scenario())

    assert not runs(pid)


@pytest.mark.parametrize("late_s", [0.0, 0.3], ids=["it is known", "it is not known yet"])
def test_its_children_are_stopped_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, late_s: float
) -> None:
    create = asyncio.create_subprocess_exec

    async def create_slowly(*command: Any, **options: Any) -> Process:
        process = await create(*command, **options)
        await asyncio.sleep(late_s)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", create_slowly)
    program = Program(A_CHILD, tmp_path / "starts")
    runner = CompanionRunner("beside", program, SystemClock())

    async def scenario() -> int:
        runner.start([("PLAINTEXT", "here:1")])
        ((child, _),) = await program.until(bool)
        await runner.stop(1.0)
        await gone(child)
        return child

    child = asyncio.run(scenario())

    assert not runs(child)


def test_its_standard_input_ends_when_the_host_is_killed(tmp_path: Path) -> None:
    program = Program(DEAF, tmp_path / "starts")

    async def scenario() -> None:
        runner = CompanionRunner("beside", program, SystemClock())
        runner.start([("PLAINTEXT", "here:1")])
        await program.until(bool)
        os._exit(9)

    host = os.fork()
    if not host:
        asyncio.run(scenario())
    os.waitpid(host, 0)
    ((pid, _),) = program.starts()

    asyncio.run(gone(pid))
    assert not runs(pid)


def test_a_companion_that_cannot_be_started_does_not_stop_the_host(tmp_path: Path) -> None:
    class Missing(Program):
        def command(self, bootstrap_servers: str) -> Sequence[str]:
            return ["/no/such/program"]

    runner = CompanionRunner("beside", Missing("", tmp_path), SystemClock(), backoff_s=0.01)

    async def scenario() -> None:
        runner.start([("PLAINTEXT", "here:1")])
        while runner.starts < 2:
            await asyncio.sleep(0.01)
        await runner.stop(1.0)

    asyncio.run(scenario())

    assert runner.starts > 1
    assert runner.process is None


@pytest.mark.parametrize(
    ("wanted", "address"),
    [
        (None, "host:2"),
        ("PLAINTEXT", "host:2"),
        ("SASL_SSL", "host:3"),
        ("SSL", "host:1"),
    ],
)
def test_it_gets_the_address_of_a_listener_that_it_can_connect_to(
    tmp_path: Path, wanted: str | None, address: str
) -> None:
    program = Program(WAITS, tmp_path / "starts")
    if wanted is not None:
        program.security_protocol = wanted  # type: ignore[attr-defined]
    listeners = [("SSL", "host:1"), ("PLAINTEXT", "host:2"), ("SASL_SSL", "host:3")]

    assert address_for(program, listeners) == address
    assert address_for(program, listeners[:1]) == "host:1"


def test_a_host_whose_first_listener_has_tls_passes_the_other_one(tmp_path: Path) -> None:
    program = Program(WAITS, tmp_path / "starts")
    plugins = HostPluginManager()
    plugins.add("beside", Plugin(program), "odradek-beside", "1.0")
    listeners = "listeners=SSL://localhost:0,PLAINTEXT://127.0.0.1:0"
    config = load_config(None, [listeners, f"data.dir={tmp_path / 'data'}", *Files(tmp_path).settings])

    async def scenario() -> tuple[list[tuple[int, str]], int]:
        host = Host(config, plugins=plugins)
        try:
            await host.start()
            return await program.until(bool), host.listeners[1].bound_port
        finally:
            await host.stop()

    ((_, address),), port = asyncio.run(scenario())

    assert address == f"127.0.0.1:{port}"
