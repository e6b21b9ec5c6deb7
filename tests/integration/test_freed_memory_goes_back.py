"""The allocator of a process gives back what many connections, and large answers, have left."""

from __future__ import annotations

import contextlib
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from odradek.process.freed_memory import KEPT_BYTES, MUCH_BYTES
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from odradek.wire.messages.describe_transactions import DescribeTransactionsRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest
from support.child_process import same_imports
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

GROWN_AND_FREED = """
import ctypes
from odradek.process.limits import keep_buffers
from odradek.process.freed_memory import give_back_freed

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

keep_buffers()
before = resident()
blocks = [bytes(20_000) for _ in range(10_000)]
kept = blocks[::100]
del blocks
held = resident()
give_back_freed()
print(held - before, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_blocks_between_used_ones_go_back_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWN_AND_FREED], check=True, stdout=subprocess.PIPE, text=True
    )
    held, left = map(int, done.stdout.split())

    assert held > 150_000_000
    assert left < held / 4


HOST = """
import sys
from pathlib import Path
from odradek.cli.ephemeral import clock_from_now
from odradek.process.limits import keep_buffers
from odradek.process.freed_memory import LOOK_MS, FreedMemory
from support.hosts import running_host

keep_buffers()
clock = clock_from_now()
with running_host(Path(sys.argv[1]), "topics.max=20000", clock=clock) as host:
    freed = host.call(lambda: FreedMemory.of_process(host.host.clock, host.host.timer))
    clock.drive(host)
    print(host.bootstrap, freed is not None, flush=True)
    for line in sys.stdin:
        clock.advance(3 * LOOK_MS)
        print("looked", flush=True)
"""
"""A host whose time is advanced by each line of its input."""
TOPICS: Final = 1_000
AT_ONCE: Final = 8
TIMEOUT_S: Final = 60.0
LEFT_BYTES: Final = KEPT_BYTES + MUCH_BYTES + (8 << 20)
"""The allocator keeps some, and less than much is not worth a pause."""
NAMES: Final = [f"topic-{number}" for number in range(TOPICS)]
LARGE: Final[dict[str, tuple[Any, int]]] = {
    "DescribeConfigs": (
        DescribeConfigsRequest(
            resources=[DescribeConfigsResource(resource_type=2, resource_name=name) for name in NAMES],
            include_synonyms=True,
            include_documentation=True,
        ),
        4,
    ),
    "Metadata": (MetadataRequest(topics=None), 12),
    "ListOffsets": (
        ListOffsetsRequest(
            topics=[
                ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(timestamp=-1)] * 10)
                for name in NAMES
            ]
        ),
        7,
    ),
    "DescribeLogDirs": (DescribeLogDirsRequest(topics=None), 4),
    "DescribeGroups": (DescribeGroupsRequest(groups=["g" * 200 + name for name in NAMES] * 10), 5),
    "DescribeTransactions": (
        DescribeTransactionsRequest(transactional_ids=["t" * 200 + n for n in NAMES] * 10),
        0,
    ),
    "FindCoordinator": (FindCoordinatorRequest(coordinator_keys=["k" * 200 + n for n in NAMES] * 10), 4),
}


def read_answer(client: WireClient) -> None:
    """Read it without decoding it."""
    (left,) = struct.unpack(">i", client.receive(4))
    while left:
        left -= len(client.socket.recv(min(left, 1 << 20)))


def private_bytes(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Private_"))


class Host:
    """A host in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        bootstrap, self.tells = self.line().split()
        host, _, port = bootstrap.rpartition(":")
        self.address = (host, int(port))

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def rested_bytes(self) -> int:
        """Its memory after half a minute without requests."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.line() == "looked\n"
        return private_bytes(self.process.pid)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    command = [sys.executable, "-c", HOST, str(tmp_path_factory.mktemp("host"))]
    env = same_imports() | {
        "MALLOC_ARENA_MAX": "1"
    }  # its loop is not on the main thread, as that of `serve` is
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=env, **pipes) as process:  # type: ignore[call-overload]
        running = Host(process)
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in NAMES]
        with WireClient(running.address) as client:
            client.introduce()
            client.send(CreateTopicsRequest(topics=topics, timeout_ms=60_000))
        yield running
        process.stdin.close()


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
@pytest.mark.parametrize("api", LARGE)
def test_large_answers_leave_little_memory(host: Host, api: str) -> None:
    if host.tells == "False":
        pytest.skip("glibc's allocator")
    request, version = LARGE[api]
    with WireClient(host.address) as first:  # its codecs stay
        first.socket.settimeout(TIMEOUT_S)
        first.send_bytes(first.frame(request, version))
        read_answer(first)
    before = host.rested_bytes()

    with contextlib.ExitStack() as opened:
        clients = [opened.enter_context(WireClient(host.address)) for _ in range(AT_ONCE)]
        for client in clients:
            client.socket.settimeout(TIMEOUT_S)
            client.send_bytes(client.frame(request, version))
        for client in clients:
            read_answer(client)

    assert host.rested_bytes() - before < LEFT_BYTES
