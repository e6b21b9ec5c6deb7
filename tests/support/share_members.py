"""Members of a share group: Kafka's Java client, told what to do line by line."""

from __future__ import annotations

import queue
import subprocess
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from odradek.wire.config_resource import ResourceType
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.batches import batch_of
from support.data_requests import produce_request
from support.wire_client import WireClient

PATIENCE_S = 120
"""For steps that take seconds on an idle machine."""
Record = tuple[int, int, int, str]
"""Partition, offset, deliveries, value."""


@dataclass
class ShareMember:
    """One running ``odradek.ShareMember``."""

    process: subprocess.Popen[str]
    lines: queue.Queue[str | None] = field(default_factory=queue.Queue)
    got: list[str] = field(default_factory=list)
    """Values of a `drain`."""
    taken: list[str] = field(default_factory=list)
    """Those whose acceptance was answered."""

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def pump(self) -> None:
        """Queue what it says; None at the end."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.strip())
        self.lines.put(None)

    def read_until(self, word: str) -> list[str]:
        """The lines up to one that begins with a word, which is the last."""
        lines = []
        while (line := self.lines.get(timeout=PATIENCE_S)) is not None:
            lines.append(line)
            if line.startswith(word):
                return lines
        raise AssertionError(f"it ended without {word!r} after {lines}")

    def poll(self, count: int = 1, wait_ms: int = 30_000) -> list[Record]:
        """The records of the first poll that has some."""
        self.tell(f"poll {count} {wait_ms}")
        found = []
        for line in self.read_until("polled")[:-1]:
            _, partition, offset, deliveries, value = line.split()
            found.append((int(partition), int(offset), int(deliveries), value))
        return found

    def say(self, word: str, records: Sequence[Record]) -> None:
        """Acknowledge records; `commit` sends the words."""
        for partition, offset, *_ in records:
            self.tell(f"{word} {partition} {offset}")

    def commit(self) -> str:
        """The errors of a commit; empty if there are none."""
        self.tell("commit")
        return self.read_until("committed")[-1].removeprefix("committed").strip()

    def drain(self) -> None:
        """Begin to take all records, until it is told something else."""
        self.tell("drain")

    def read(self, wait_s: float = 0) -> bool:
        """Read a line of a `drain`; return whether there was one."""
        try:
            line = self.lines.get(timeout=wait_s) if wait_s else self.lines.get_nowait()
        except queue.Empty:
            return False
        word, _, value = (line or "").partition(" ")
        if word == "value":
            self.taken.append(value)
        elif word == "got":
            self.got.append(value)
        return line is not None

    def kill(self) -> None:
        """End it as ``kill -9`` does, and read what it has said before."""
        self.process.kill()
        while self.read(PATIENCE_S):
            pass


def drain_until(members: Sequence[ShareMember], values: Collection[str], *others: ShareMember) -> None:
    """Wait until the members, with others that are gone, have got all values."""
    deadline = time.monotonic() + PATIENCE_S
    wanted = set(values)
    while time.monotonic() < deadline:
        if not sum(each.read() for each in members):
            if wanted <= {value for each in (*members, *others) for value in each.got}:
                break
            members[0].read(0.05)
    for each in members:  # what they have accepted is answered by then
        each.tell("commit")
        while (line := each.lines.get(timeout=PATIENCE_S)) is not None and not line.startswith("committed"):
            word, _, value = line.partition(" ")
            (each.taken if word == "value" else each.got).append(value)


@contextmanager
def share_member(command: list[str]) -> Iterator[ShareMember]:
    """Start a member; it is killed at the end."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        member = ShareMember(process)
        reader = threading.Thread(target=member.pump)
        reader.start()
        try:
            yield member
        finally:
            process.kill()
            reader.join()


def address_of(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def configure(bootstrap: str, kind: int, name: str, settings: Mapping[str, str]) -> None:
    """Set keys of a group or another resource."""
    configs = [AlterableConfig(name=key, value=value) for key, value in settings.items()]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    with WireClient(address_of(bootstrap)) as client:
        answer = client.send(IncrementalAlterConfigsRequest(resources=[resource]))
    assert [each.error_code for each in answer.responses] == [0]


def configure_group(bootstrap: str, group_id: str, **settings: str) -> None:
    """Set ``share.*`` settings of a group; underscores stand for dots."""
    keys = {f"share.{name.replace('_', '.')}": value for name, value in settings.items()}
    configure(bootstrap, ResourceType.GROUP, group_id, keys)


def produce_values(bootstrap: str, topic: str, values: Sequence[str], partition: int = 0) -> None:
    """Append one batch of values."""
    batch = batch_of(*(value.encode() for value in values))
    with WireClient(address_of(bootstrap)) as client:
        answer = client.send(produce_request(topic, batch, index=partition), 9)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0]
