"""Totals of processes that share partitions: whatever dies, moves or fails, they are the sums of the log."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import Origin, Retry, TelemetryRecord
from odradek.temporality import CumulativeForwarder, Engine, StoreFailed, TotalsSettings
from support.coroutines import ran
from support.delta_clients import TOPIC, Scene, Store, d, points_of

PARTITIONS, CLIENTS, PROCESSES = 3, 2, 3
BATCH = 4


class Died(Exception):
    """The process is gone."""


@dataclass
class Partition:
    """A partition of the changelog, and the number of its owners so far."""

    store: Store = field(default_factory=Store)
    epoch: int = 0


class Changelog:
    """One process's store in the shared partitions. Its next commit may be the last thing it does."""

    name = "changelog"
    parts = PARTITIONS

    def __init__(self, partitions: list[Partition]) -> None:
        self.partitions = partitions
        self.epochs: dict[int, int] = {}
        self.dies: str | None = None

    def open(self) -> None:
        """Nothing to do."""

    def part_of(self, position: Origin | None) -> int:
        assert position is not None
        return position.partition

    def load(self, engine: Engine, part: int) -> None:
        self.partitions[part].epoch += 1
        self.epochs[part] = self.partitions[part].epoch
        self.partitions[part].store.load(engine)

    def commit(self, engine: Engine, part: int) -> None:
        if self.dies == "before":
            raise Died
        if self.epochs[part] != self.partitions[part].epoch:
            raise StoreFailed("another process has taken over the partition")
        self.partitions[part].store.commit(engine.take_changes())
        if self.dies == "after":
            raise Died

    def close(self) -> None:
        """Nothing to do."""


@dataclass
class World:
    """A log, its group, three processes and their destination."""

    chance: random.Random
    log: list[list[TelemetryRecord]] = field(default_factory=lambda: [[] for _ in range(PARTITIONS)])
    changelog: list[Partition] = field(default_factory=lambda: [Partition() for _ in range(PARTITIONS)])
    committed: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    """The offsets of the group."""
    owners: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    shown: dict[bytes, list[float]] = field(default_factory=lambda: defaultdict(list))
    sums: dict[bytes, float] = field(default_factory=lambda: defaultdict(float))
    is_down: bool = False

    def __post_init__(self) -> None:
        self.processes = [Process(self) for _ in range(PROCESSES)]
        for partition in range(PARTITIONS):
            self.move(partition)

    def push(self) -> None:
        """A client pushes a delta."""
        partition = self.chance.randrange(PARTITIONS)
        instance = bytes([partition, self.chance.randrange(CLIENTS)]) * 8
        offset, value = len(self.log[partition]), float(self.chance.randrange(10))
        second = 60 * offset
        record = Scene().record(d(value, second, second + 60), at=second + 60, instance=instance)
        record.position = Origin(TOPIC, partition, offset)
        self.log[partition].append(record)
        self.sums[instance] += value

    def move(self, partition: int) -> None:
        """The group gives a partition to a process. The former owner may not know it yet."""
        if self.chance.random() < 0.7:
            former = self.processes[self.owners[partition]]
            former.positions.pop(partition, None)
            former.forwarder.keep(tuple(former.positions))
        self.owners[partition] = self.chance.randrange(PROCESSES)
        self.processes[self.owners[partition]].positions[partition] = self.committed[partition]

    def die(self, number: int) -> None:
        """A process dies, during a commit if it has something to commit; another one takes its place."""
        process = self.processes[number]
        process.changelog.dies = self.chance.choice(("before", "after"))
        process.turn()
        self.processes[number] = Process(self)
        for partition, owner in enumerate(self.owners):
            if owner == number:
                self.move(partition)

    def step(self) -> None:
        """Anything happens."""
        what = self.chance.random()
        if what < 0.4:
            self.push()
        elif what < 0.8:
            self.chance.choice(self.processes).turn()
        elif what < 0.9:
            self.move(self.chance.randrange(PARTITIONS))
        elif what < 0.95:
            self.die(self.chance.randrange(PROCESSES))
        else:
            self.is_down = not self.is_down


class Process:
    """One process, with the partitions that it believes to have."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.changelog = Changelog(world.changelog)
        self.forwarder = CumulativeForwarder(self, TotalsSettings())
        self.forwarder.store_in(self.changelog)
        self.positions: dict[int, int] = {}
        ran(self.forwarder.start())

    def turn(self) -> None:
        """Deliver a batch; commit its offsets if the group still agrees."""
        ends = {
            partition: min(start + BATCH, len(self.world.log[partition]))
            for partition, start in self.positions.items()
        }
        batch = [
            record
            for partition, end in ends.items()
            for record in self.world.log[partition][self.positions[partition] : end]
        ]
        try:
            ran(self.forwarder.deliver(batch))
        except (Retry, Died):
            return
        for partition, end in ends.items():
            self.positions[partition] = end
            if self.world.processes[self.world.owners[partition]] is self:
                self.world.committed[partition] = end

    async def start(self) -> None:
        """The destination needs nothing."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        if self.world.is_down:
            raise Retry("down")
        for record in batch:
            (point,) = points_of(MetricsData.FromString(record.payload.data))
            self.world.shown[record.payload.client_instance_id].append(point.as_double)

    async def close(self) -> None:
        """The destination needs nothing."""


@given(st.integers(0, 1_000_000))
def test_totals_of_processes_that_share_partitions_are_the_sums_of_the_log(seed: int) -> None:
    world = World(random.Random(seed))
    for _ in range(120):
        world.step()
    world.is_down = False
    while world.committed != [len(records) for records in world.log]:
        for process in world.processes:
            process.turn()

    assert {instance: totals[-1] for instance, totals in world.shown.items()} == world.sums
    assert all(totals == sorted(totals) for totals in world.shown.values())
