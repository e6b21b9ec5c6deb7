"""A million numbered records: a host that is killed meanwhile, and a group that checks the records it
reads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaException
from contrib.capture.ports import free_port

from support.hosts import ServeProcess

RECORDS = 1_000_000
SIZE_BYTES = 100
PARTITIONS = 6
TOPIC = "numbered"
KILLS = 3
MEMBERS = 3
BATCH = 1_000
PAUSE_S = 0.05
"""The pause between two reads while the group is rebalancing, so that the rebalance ends before the records
do.
"""


def value(number: int) -> bytes:
    """The value of record ``number`` of its partition."""
    return b"%d" % number + b" " * (SIZE_BYTES - len(str(number)))


class KillableHost:
    """``odradek serve``, killed three times and restarted on the same port with the same data."""

    def __init__(self, data_dir: Path) -> None:
        self.port = free_port()
        self.killed = 0
        self.said: list[str] = []
        """The standard error of the killed processes, in lines."""
        settings = (f"listeners=PLAINTEXT://127.0.0.1:{self.port}", f"data.dir={data_dir}")
        self.arguments = [argument for setting in settings for argument in ("--set", setting)]
        self.serve = ServeProcess(*self.arguments)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def kill_when_due(self, acknowledged: int) -> None:
        """Kill with SIGKILL and start again, `KILLS` times, evenly over the acknowledged records."""
        if self.killed < KILLS and acknowledged >= (self.killed + 1) * RECORDS // (KILLS + 1):
            self.killed += 1
            self.serve.kill()
            self.said += self.serve.errors
            self.serve = ServeProcess(*self.arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.serve.terminate()
        if error is not None:
            print(*(self.said + self.serve.errors)[-50:], sep="\n")


@dataclass(slots=True)
class Ledger:
    """The number that must come next in each partition. Thread-safe."""

    expected: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    surprises: list[str] = field(default_factory=list)
    """Records that came again, too early or not at all."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def total(self) -> int:
        return sum(self.expected)

    def take(self, records: Iterable[tuple[int, bytes]]) -> None:
        """Partition and value of each record, in the order in which a member got them."""
        with self.lock:
            for partition, text in records:
                number = int(text)
                if number != self.expected[partition] and len(self.surprises) < 10:
                    self.surprises.append(f"{partition}: {number} for {self.expected[partition]}")
                self.expected[partition] = number + 1


class Group:
    """Three members of one group in threads; halfway, one leaves and another one joins."""

    def __init__(self, consumer: Callable[[dict[str, Any]], Any], config: dict[str, Any]) -> None:
        self.consumer = consumer
        self.config = config
        self.ledger = Ledger()
        self.owned: dict[str, set[int]] = {}
        self.assignments = 0
        self.failures: list[BaseException] = []

    @property
    def is_settled(self) -> bool:
        owned = list(self.owned.values())
        return len(owned) == MEMBERS and sorted(p for some in owned for p in some) == list(range(PARTITIONS))

    def read_all(self, timeout_s: float) -> None:
        """Wait until every record was read.

        Raises:
            AssertionError: It took too long, or a member failed.
        """
        deadline = time.monotonic() + timeout_s
        half, end = RECORDS // 2, RECORDS

        def reached(count: int) -> Callable[[], bool]:
            return lambda: self.ledger.total >= count or time.monotonic() > deadline or bool(self.failures)

        plan = [("one", 0, end), ("two", 0, end), ("leaves", 0, half), ("comes", half, end)]
        threads = [
            threading.Thread(target=self.member, args=(name, reached(start), reached(stop)), name=name)
            for name, start, stop in plan
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not self.failures, self.failures
        assert self.ledger.total >= RECORDS, self.ledger.expected

    def member(self, name: str, may_start: Callable[[], bool], is_over: Callable[[], bool]) -> None:
        while not may_start():
            time.sleep(PAUSE_S)
        try:
            self.read(name, is_over)
        except BaseException as error:
            self.failures.append(error)
            raise
        finally:
            self.owned.pop(name, None)

    def read(self, name: str, is_over: Callable[[], bool]) -> None:
        """The run of one member. It commits the records it has read before its partitions go to another."""
        consumer = self.consumer(self.config | {"client.id": name})
        owned = self.owned[name] = set()

        def assigned(_consumer: Any, partitions: list[Any]) -> None:
            self.assignments += 1
            owned.update(partition.partition for partition in partitions)

        def revoked(_consumer: Any, partitions: list[Any]) -> None:
            for partition in partitions:
                partition.offset = self.ledger.expected[partition.partition]
            try:
                if partitions:
                    consumer.commit(offsets=partitions, asynchronous=False)
            except KafkaException as error:
                # confluent_kafka would raise it from close() as an object that no `except` catches.
                self.failures.append(RuntimeError(f"{name} cannot commit {partitions}: {error}"))
            owned.difference_update(partition.partition for partition in partitions)

        consumer.subscribe([TOPIC], on_assign=assigned, on_revoke=revoked)
        while not is_over():
            batch = consumer.consume(BATCH, PAUSE_S)
            assert all(message.error() is None for message in batch)
            self.ledger.take((message.partition(), message.value()) for message in batch)
            if not self.is_settled:
                time.sleep(PAUSE_S)
        consumer.close()
