"""Members of a share group: Kafka's Java client, told what to do line by line."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from support.batches import batch_of
from support.data_requests import produce_request
from support.wire_client import WireClient

GROUP_RESOURCE = 32
Record = tuple[int, int, int, str]
"""Partition, offset, deliveries, value."""


@dataclass
class ShareMember:
    """One running ``odradek.ShareMember``."""

    process: subprocess.Popen[str]
    got: list[str] = field(default_factory=list)
    """Values of a `drain`."""
    taken: list[str] = field(default_factory=list)
    """Those whose acceptance was answered."""

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def read_until(self, word: str) -> list[str]:
        """The lines up to one that begins with a word, which is the last."""
        assert self.process.stdout is not None
        lines = []
        for line in self.process.stdout:
            lines.append(line.strip())
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

    def drain(self, count: int, idle_ms: int) -> None:
        """Begin to take records, until there are so many, or none for a while."""
        self.tell(f"drain {count} {idle_ms}")

    def drained(self) -> None:
        """Wait until that has ended."""
        while self.next_word() != "drained":
            pass

    def wait_for_values(self, count: int) -> None:
        """Wait until so many values were taken."""
        while len(self.taken) < count:
            assert self.next_word()

    def kill(self) -> None:
        """End it as ``kill -9`` does, and read what it has said before."""
        self.process.kill()
        while self.next_word():
            pass

    def next_word(self) -> str:
        """The first word of the next line of a `drain`; empty at the end."""
        assert self.process.stdout is not None
        word, _, value = self.process.stdout.readline().strip().partition(" ")
        if word == "value":
            self.taken.append(value)
        elif word == "got":
            self.got.append(value)
        return word


@contextmanager
def share_member(command: list[str]) -> Iterator[ShareMember]:
    """Start a member; it is killed at the end."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield ShareMember(process)
        finally:
            process.kill()


def address_of(bootstrap: str) -> tuple[str, int]:
    host, _, port = bootstrap.rpartition(":")
    return host, int(port)


def configure_group(bootstrap: str, group_id: str, **settings: str) -> None:
    """Set ``share.*`` settings of a group; underscores stand for dots."""
    configs = [
        AlterableConfig(name=f"share.{name.replace('_', '.')}", value=value)
        for name, value in settings.items()
    ]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group_id, configs=configs)
    with WireClient(address_of(bootstrap)) as client:
        answer = client.send(IncrementalAlterConfigsRequest(resources=[resource]))
    assert [each.error_code for each in answer.responses] == [0]


def produce_values(bootstrap: str, topic: str, values: Sequence[str], partition: int = 0) -> None:
    """Append one batch of values."""
    batch = batch_of(*(value.encode() for value in values))
    with WireClient(address_of(bootstrap)) as client:
        answer = client.send(produce_request(topic, batch, index=partition), 9)
    assert [each.error_code for each in answer.responses[0].partition_responses] == [0]
