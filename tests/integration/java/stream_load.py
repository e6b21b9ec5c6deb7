"""Instances of `odradek.ExactlyOnceStream`, a producer of numbered records and a reader of the results."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from integration.java.jvm import Jvm
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")

RECORDS_PER_S = 100
KEYS = 7
PARTITIONS = 3
APPLICATION = "exactly-once"
"""The id of the application, and of its group."""
FROM, COPIES, COUNTS = "streamed", "streamed-copies", "streamed-counts"
PATIENCE_S = 180


@dataclass(slots=True)
class Load:
    """The records that were produced, and those that a consumer of committed records has read."""

    copies: list[int] = field(default_factory=list)
    counts: dict[bytes, list[int]] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    produced: int = 0
    acknowledged: int = 0
    enough: threading.Event = field(default_factory=threading.Event)
    """Ends the producer."""
    ended: threading.Event = field(default_factory=threading.Event)
    """Ends the consumer."""

    @property
    def is_complete(self) -> bool:
        counted = sum(max(each) for each in self.counts.values())
        return len(set(self.copies)) == counted == self.produced

    def goes_on(self) -> None:
        """Wait for more copies."""
        before = len(self.copies)
        wait_until(lambda: len(self.copies) > before or self.failures, "copies go on", PATIENCE_S)

    def ends(self) -> None:
        """Produce no more, and wait until everything is copied and counted."""
        self.enough.set()
        wait_until(
            lambda: self.is_complete or self.failures,
            lambda: (self.produced, len(self.copies), self.counts),
            PATIENCE_S,
        )

    def check(self) -> None:
        """Check that every record was copied once, and counted once in its key."""
        assert self.failures == []
        assert self.acknowledged == self.produced
        assert sorted(self.copies) == list(range(self.produced))
        assert {key: max(counts) for key, counts in self.counts.items()} == {
            f"key-{key}".encode(): len(range(key, self.produced, KEYS)) for key in range(KEYS)
        }
        assert all(counts == sorted(set(counts)) for counts in self.counts.values())


@dataclass(slots=True)
class Application:
    """One running instance."""

    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    """What it has printed: its states."""
    reader: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self.reader = threading.Thread(target=self.read)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        self.lines.extend(line.strip() for line in self.process.stdout)

    def kill(self) -> None:
        """Send SIGKILL, if it still runs."""
        self.process.kill()
        self.process.wait()
        self.reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()

    def ends_well(self) -> None:
        """Let it close; it must not have failed."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        status = self.process.wait(PATIENCE_S)
        self.reader.join()
        assert status == 0, self.lines
        assert "state=RUNNING" in self.lines
        assert "state=ERROR" not in self.lines


def started(jvm: Jvm, bootstrap: str, folder: Path, *settings: str) -> Application:
    """Start an instance; the caller kills it."""
    arguments = (bootstrap, APPLICATION, FROM, COPIES, COUNTS, str(folder), *settings)
    command = jvm.command("odradek.ExactlyOnceStream", *arguments)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    return Application(process)


def produce(bootstrap: str, load: Load) -> None:
    """Produce numbered records at a steady rate."""

    def delivered(error: Any, _message: Any) -> None:
        if error is None:
            load.acknowledged += 1
        else:
            load.failures.append(str(error))

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    while not load.enough.wait(1 / RECORDS_PER_S):
        producer.produce(FROM, str(load.produced), f"key-{load.produced % KEYS}", on_delivery=delivered)
        load.produced += 1
        producer.poll(0)
    producer.flush(PATIENCE_S)


def read(bootstrap: str, load: Load) -> None:
    """Read until the end of the test: a record that comes twice may come late."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "streamed-readers",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    # not as a member of a group: one that joins again would read again
    consumer.assign(
        [
            confluent_kafka.TopicPartition(topic, partition, confluent_kafka.OFFSET_BEGINNING)
            for topic in (COPIES, COUNTS)
            for partition in range(PARTITIONS)
        ]
    )
    while not load.ended.is_set():
        for message in consumer.consume(500, 0.2):
            if message.error() is not None:
                continue  # librdkafka reports lost connections here, too, and goes on
            if message.topic() == COPIES:
                load.copies.append(int(message.value()))
            else:
                load.counts.setdefault(message.key(), []).append(int.from_bytes(message.value()))
    consumer.close()


@contextmanager
def running(load: Load, bootstrap: str) -> Iterator[None]:
    """A producer and a consumer in threads."""
    threads = [threading.Thread(target=work, args=(bootstrap, load)) for work in (produce, read)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        load.enough.set()
        load.ended.set()
        for thread in threads:
            thread.join()
