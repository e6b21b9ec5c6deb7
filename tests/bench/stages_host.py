"""The host of the stages bench, or the server that only receives and answers.

Prints ``ready port=N``. A line ``probe NAME`` on standard input measures the functions of one probe from then
on (on new connections), and is answered by ``ok``; an unknown name measures none. A line ``read`` is answered
by the nanoseconds spent in them, as JSON. The process ends when standard input closes.

Only one probe is on at a time: reading the clock costs as much as a small stage, and must not be charged to
others. The cost of the measurement itself is found with an empty function, and subtracted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from time import thread_time_ns
from typing import Any, cast
from unittest.mock import patch

import uvloop

from bench.host import RECEIVERS, SETTINGS, JumpingClock, plugins_of
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.log.extent import Extent
from odradek.log.file_slice import FileSlice
from odradek.log.partition_log import PartitionLog
from odradek.log.segment_file import OpenFiles, SegmentFile
from odradek.net.channel import Channel
from odradek.net.large_frame import SHARED_BUFFER_BYTES, LargeFrame
from odradek.net.sending import LARGE_SLICE_BYTES, Sending, plain_socket
from odradek.net.turns import Turns
from odradek.process.garbage import freeze_garbage
from odradek.process.limits import keep_buffers, switch_threads_often
from odradek.programs.config import load_config
from odradek.programs.host import Host
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.client_metrics_stats import InstanceStats
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.waiting.clock import SystemClock
from odradek.wire.parts import Parts

EXCLUDED = {"reading": (Dispatcher, "answer_read")}
"""A function within those of a probe that is not part of it."""
CALIBRATION_CALLS = 5_000
COPIES = 4
LENGTH = struct.Struct(">i")
OF_A_ROUTE = ("read", "write", "handler")
"""Probes of functions that are compiled for each API and version."""
PROBES: dict[str, tuple[tuple[type, str], ...]] = {
    "received": (
        (Channel, "data_received"),
        (Channel, "pause_writing"),
        (Channel, "resume_writing"),
        (LargeFrame, "get_buffer"),
        (LargeFrame, "buffer_updated"),
        (Turns, "do_work"),
    ),
    "answer": ((Dispatcher, "answer"),),
    "reading": ((Dispatcher, "answer_large"),),
    "frame": ((Dispatcher, "frame"),),
    "metrics": ((InstanceStats, "record_export"), (Dispatcher, "charge")),
    "payload": ((ClientMetricsManager, "open"), (PartitionLog, "prepare")),
    "receivers": ((ClientMetricsReceiverPlugin, "export"),),
    "log": ((PartitionLog, "append_prepared"), (PartitionLog, "find"), (Extent, "read"), (Extent, "slice")),
    "written": ((FileSlice, "send_to"),),
}


class Probe:
    """CPU time of the thread within some functions. A call within another one counts once."""

    def __init__(self) -> None:
        self.spent_ns = self.calls = 0
        self.inside = False
        measured = self.around(lambda: None)
        for _ in range(CALIBRATION_CALLS):
            measured()
        self.own_ns = self.spent_ns / self.calls
        self.spent_ns = self.calls = 0

    def around(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, measured."""

        def measured(*given: Any, **named: Any) -> Any:
            if self.inside:
                return function(*given, **named)
            self.inside = True
            began_ns = thread_time_ns()
            try:
                return function(*given, **named)
            finally:
                self.spent_ns += thread_time_ns() - began_ns
                self.calls += 1
                self.inside = False

        return measured

    def without(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function whose time does not count."""

        def unmeasured(*given: Any, **named: Any) -> Any:
            began_ns = thread_time_ns()
            try:
                return function(*given, **named)
            finally:
                if self.inside:
                    self.spent_ns -= thread_time_ns() - began_ns

        return unmeasured

    @property
    def net_ns(self) -> float:
        """The time without the cost of the measurement."""
        return self.spent_ns - self.calls * self.own_ns


class Transport:
    """A transport whose writes are measured."""

    def __init__(self, transport: asyncio.Transport, probe: Probe) -> None:
        self.transport = transport
        self.write = probe.around(transport.write)
        self.writelines = probe.around(transport.writelines)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


def install(name: str, probe: Probe, dispatcher: Dispatcher, patches: ExitStack) -> None:
    """Measure the functions of one probe."""
    if name in OF_A_ROUTE:
        for route in dispatcher.compiled.values():
            patches.enter_context(patch.object(route, name, probe.around(getattr(route, name))))
    if name == "written":
        made = Channel.connection_made

        def connection_made(channel: Channel, transport: asyncio.Transport) -> None:
            made(channel, transport)
            channel.transport = Transport(transport, probe)  # type: ignore[assignment]

        patches.enter_context(patch.object(Channel, "connection_made", connection_made))
    for owner, function in PROBES.get(name, ()):
        patches.enter_context(patch.object(owner, function, probe.around(getattr(owner, function))))
    if name in EXCLUDED:
        owner, function = EXCLUDED[name]
        patches.enter_context(patch.object(owner, function, probe.without(getattr(owner, function))))


class Controlled:
    """A server that is controlled by lines on standard input."""

    def __init__(self, dispatcher: Dispatcher | None) -> None:
        self.dispatcher = dispatcher
        self.probe = Probe()
        self.patches = ExitStack()
        self.closed = asyncio.Event()

    def line(self) -> None:
        """Do what the next line says."""
        words = sys.stdin.readline().split()
        if not words:
            self.closed.set()
        elif words[0] == "probe":
            self.patches.close()
            self.probe = Probe()
            if self.dispatcher is not None:
                install(words[1], self.probe, self.dispatcher, self.patches)
            print("ok", flush=True)
        else:
            print(json.dumps(self.probe.net_ns), flush=True)

    async def run(self, port: int) -> None:
        """Follow the lines until standard input closes."""
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), self.line)
        print(f"ready port={port}", flush=True)
        await self.closed.wait()


class Echo(asyncio.Protocol):
    """Sends one answer to each request, whatever it is, with the correlation id of the request."""

    answers: Iterator[tuple[bytes, bytes]] = iter(())
    """The same answer again and again, what is before and after its correlation id."""
    transport: asyncio.Transport

    def __init__(self) -> None:
        self.missing_bytes = 0
        self.correlation_id = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # uvloop's do not inherit Transport

    def data_received(self, data: bytes | memoryview) -> None:
        if not self.missing_bytes:
            self.missing_bytes = LENGTH.unpack_from(data)[0] + LENGTH.size
            self.correlation_id = bytes(data[8:12])
        self.missing_bytes -= len(data)
        if not self.missing_bytes:
            self.answer()

    def answer(self) -> None:
        length, rest = next(self.answers)
        self.transport.writelines((length + self.correlation_id, rest))


class LargeEcho(Echo, asyncio.BufferedProtocol):
    """The same for large requests, which are received as the host does: into one buffer."""

    buffer = memoryview(bytearray(SHARED_BUFFER_BYTES))

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self.buffer[:nbytes])


class FileEcho(Echo):
    """The same for large answers, which are sent as the host does: by the kernel, from the file."""

    file: SegmentFile
    writing_paused = False
    sending: Sending | None = None

    def answer(self) -> None:
        length, rest = next(self.answers)
        parts = Parts([length + self.correlation_id, self.file.slice(len(rest), 8)])
        self.sending = Sending(parts, plain_socket(self.transport))
        self.resume_writing()

    def pause_writing(self) -> None:
        self.writing_paused = True

    def resume_writing(self) -> None:
        self.writing_paused = False
        while self.sending is not None and not self.writing_paused:
            self.sending.write_to(cast(Any, self), scarce=False)
            if not self.sending.left:
                self.sending = None


async def echo(answer: Path, *, large: bool) -> None:
    """Answer everything with the bytes of a file."""
    # several copies, because a large answer of the host is not in the processor's nearest cache either
    Echo.answers = cycle([(answer.read_bytes()[:4], answer.read_bytes()[8:]) for _ in range(COPIES)])
    FileEcho.file = SegmentFile(answer, OpenFiles())
    kind = LargeEcho if large else FileEcho if answer.stat().st_size > LARGE_SLICE_BYTES else Echo
    server = await asyncio.get_running_loop().create_server(kind, "127.0.0.1", 0)
    freeze_garbage()
    await Controlled(None).run(server.sockets[0].getsockname()[1])


async def serve(arguments: argparse.Namespace, directory: str) -> None:
    """Run the whole host."""
    settings: Sequence[str] = (*SETTINGS, f"data.dir={Path(directory) / 'data'}", *arguments.set)
    clock = JumpingClock() if arguments.clock == "jumping" else SystemClock()
    plugins = plugins_of(RECEIVERS[arguments.receiver](), enrich=arguments.enrich)
    host = Host(load_config(None, settings), clock=clock, plugins=plugins)
    await host.start()
    freeze_garbage()
    await Controlled(host.dispatcher).run(host.listeners[0].bound_port)
    await host.stop()


def arguments_of(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--receiver", choices=RECEIVERS, default="noop")
    parser.add_argument("--clock", choices=("jumping", "real"), default="jumping")
    parser.add_argument("--enrich", action="store_true", help="with the labels of odradek-enrich")
    parser.add_argument("--set", action="append", default=[], help="a setting of the host")
    parser.add_argument("--echo", type=Path, help="no host: answer all requests with the bytes of this file")
    parser.add_argument("--large", action="store_true", help="--echo receives requests into one buffer")
    return parser.parse_args(argv)


if __name__ == "__main__":
    given = arguments_of(sys.argv[1:])
    keep_buffers()
    switch_threads_often()
    with (
        tempfile.TemporaryDirectory() as root,
        asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner,
    ):
        runner.run(echo(given.echo, large=given.large) if given.echo else serve(given, root))
