"""What TLS costs beside plaintext under a backlog: a writer that does not wait, a reader that starts late.

CPU time is compared, not time. The bounds are generous; `bench.tls` has the goals.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from odradek.wire.codec import encode
from odradek.wire.header import RequestHeader, flexible_request_header, request_header
from odradek.wire.messages.fetch import FetchRequest
from odradek.wire.messages.produce import ProduceRequest
from support.batches import batch_of
from support.certificates import Files, authority
from support.data_requests import fetch_request, produce_request
from support.hosts import ServeProcess

REQUESTS: Final = 64
RECORD_BYTES: Final = 1_000_000
ALL_BYTES: Final = REQUESTS * RECORD_BYTES
WAITS_MOST_BYTES: Final = 48 << 20
"""Less than what the clients send or ask for."""
TIMES_PLAINTEXT: Final = 4
"""The most CPU that TLS may take beside plaintext, which is twice as much as it should."""
TIMEOUT_S: Final = 60
STEADY_S: Final = 0.2

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="Linux tells the peak of a process's memory"
)


@dataclass
class Cost:
    cpu_ns: int
    growth_bytes: int


@dataclass
class Served:
    """A host with two listeners, and a topic."""

    pid: int
    ports: dict[str, int]

    def connect(self, listener: str) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.ports[listener]), TIMEOUT_S)
        if listener == "PLAINTEXT":
            return plain
        trusting = ssl.create_default_context(cadata=authority().issued.certificate)
        return trusting.wrap_socket(plain, server_hostname="localhost")

    def cpu_ns(self) -> int:
        return time.clock_gettime_ns(~self.pid << 3 | 2)

    def memory_bytes(self, row: str) -> int:
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith(row))

    def cost(self, work: Callable[[], object]) -> Cost:
        """The CPU and the growth of the host during some work of a client."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # forget the peak
        before, began_ns = self.memory_bytes("VmRSS"), self.cpu_ns()
        work()
        return Cost(self.cpu_ns() - began_ns, self.memory_bytes("VmHWM") - before)

    def wait_until_idle(self) -> None:
        """Wait until the host has nothing to do."""
        deadline_s = time.monotonic() + TIMEOUT_S
        used_ns = -1
        while (now_ns := self.cpu_ns()) - used_ns > STEADY_S * 1e9 / 20:
            assert time.monotonic() < deadline_s
            used_ns = now_ns
            time.sleep(STEADY_S)


def framed(api_key: int, version: int, body: ProduceRequest | FetchRequest) -> bytes:
    header = RequestHeader(api_key, version, 1, "backlog")
    frame = request_header(header, flexible_request_header(type(body), version)) + encode(body, version)
    return struct.pack(">i", len(frame)) + frame


def produce() -> bytes:
    return framed(0, 9, produce_request("t", batch_of(bytes(RECORD_BYTES)), acks=1))


def fetch(offset: int) -> bytes:
    return framed(1, 12, fetch_request("t", offset, most=1))


def answers(connection: socket.socket, count: int) -> int:
    """Read so many answers. Returns their size."""
    size = 0
    with connection.makefile("rb") as stream:
        for _ in range(count):
            (length,) = struct.unpack(">i", stream.read(4))
            size += len(stream.read(length))
    return size


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("backlog")
    settings = [
        "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        f"data.dir={folder / 'data'}",
        *Files(folder).settings,
    ]
    serve = ServeProcess(*(part for each in settings for part in ("--set", each)))
    try:
        listeners = serve.ready.split("listeners=")[1].split(" ")[0].split(",")
        ports = {each.split("://")[0]: int(each.rpartition(":")[2]) for each in listeners}
        with AdminClient(f"127.0.0.1:{ports['PLAINTEXT']}") as admin:
            admin.create_topics([NewTopic(name="t", partitions=1, replication_factor=1)])
        found = Served(serve.process.pid, ports)
        for listener in ports:
            with found.connect(listener) as connection:
                connection.sendall(produce() * 8)
                answers(connection, 8)
        yield found
    finally:
        serve.terminate()


def test_a_writer_that_does_not_wait(served: Served) -> None:
    request = produce()

    def write(listener: str) -> None:
        with served.connect(listener) as connection:
            for _ in range(REQUESTS):
                connection.sendall(request)
            answers(connection, REQUESTS)

    plaintext, tls = (served.cost(partial(write, listener)) for listener in served.ports)

    assert tls.cpu_ns < TIMES_PLAINTEXT * plaintext.cpu_ns
    assert tls.growth_bytes < WAITS_MOST_BYTES


@pytest.mark.ci
def test_a_reader_that_starts_late(served: Served) -> None:
    with served.connect("PLAINTEXT") as connection:
        connection.sendall(produce() * REQUESTS)
        answers(connection, REQUESTS)

    def read(listener: str) -> None:
        with served.connect(listener) as connection:
            for offset in range(REQUESTS):
                connection.sendall(fetch(offset))
            served.wait_until_idle()
            assert answers(connection, REQUESTS) > ALL_BYTES

    plaintext, tls = (served.cost(partial(read, listener)) for listener in served.ports)

    assert tls.cpu_ns < TIMES_PLAINTEXT * plaintext.cpu_ns
    assert tls.growth_bytes < WAITS_MOST_BYTES
