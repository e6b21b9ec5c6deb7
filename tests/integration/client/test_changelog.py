"""Totals in a compacted topic. The cluster is a host; test_totals_cluster has Kafka itself."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.client.admin import AdminClient
from odradek.client.changelog import CLIENT, Changelog
from odradek.client.resources import NewPartitions, NewTopic
from odradek.client.transactions import TransactionalProducer
from odradek.plugin import TelemetryRecord
from odradek.temporality import CumulativeForwarder, Engine, StoreFailed, TotalsSettings
from odradek.wire.record import Record
from support.delta_clients import A, B, Scene, d, points_of
from support.forwarding import FLEET, ThreadedForward, create_topic, far_sides, fill, until
from support.hosts import ThreadedHost, running_host
from support.spooling import FarSide
from support.waiting import wait_until

NAME = "fleet.totals"
TIMEOUT_S = 30
PARTITIONS = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreadedHost]:
    with running_host(tmp_path / "cluster", "group.initial.rebalance.delay.ms=0") as host:
        create_topic(host.bootstrap, PARTITIONS)
        create_topic(host.bootstrap, 1, f"{FLEET}_dead_letter")
        yield host


@pytest.fixture
def admin(cluster: ThreadedHost) -> Iterator[AdminClient]:
    with AdminClient(cluster.bootstrap, timeout_s=TIMEOUT_S) as client:
        yield client


@contextmanager
def changelog(cluster: ThreadedHost) -> Iterator[Changelog]:
    """One process's, opened."""
    with closing(Changelog(AdminClient(cluster.bootstrap, timeout_s=TIMEOUT_S), NAME, FLEET)) as found:
        found.open()
        yield found


def taken_over(store: Changelog) -> Scene:
    """The engine of a process that takes over the first partition."""
    scene = Scene()
    store.load(scene.engine, 0)
    return scene


def test_the_next_owner_continues_and_fences_the_former(cluster: ThreadedHost) -> None:
    with changelog(cluster) as one, changelog(cluster) as two:
        former = taken_over(one)
        former.push(d(5.0, 0, 60))
        former.push(d(1.0, 0, 60), instance=B)
        one.commit(former.engine, 0)
        former.push(d(2.0, 60, 120))
        one.commit(former.engine, 0)

        owner = taken_over(two)
        former.push(d(100.0, 120, 180))
        with pytest.raises(StoreFailed, match="another process has taken over"):
            one.commit(former.engine, 0)
        owner.push(d(100.0, 60, 120), offset=2)
        owner.push(d(3.0, 120, 180), offset=3)
        two.commit(owner.engine, 0)

        found = taken_over(one)

    assert (found.totals(), found.totals(B)) == ({"c": 10}, {"c": 1})


def test_a_batch_that_adds_nothing_is_fenced_too(cluster: ThreadedHost) -> None:
    """It would be delivered with the totals of a process that has lost the partition."""
    with changelog(cluster) as one, changelog(cluster) as two:
        former = taken_over(one)
        former.push(d(5.0, 0, 60), offset=0)
        one.commit(former.engine, 0)
        taken_over(two)
        former.push(d(5.0, 0, 60), offset=0)

        with pytest.raises(StoreFailed, match="another process has taken over"):
            one.commit(former.engine, 0)


def test_partitions_are_separate(cluster: ThreadedHost) -> None:
    with changelog(cluster) as store:
        scene = taken_over(store)
        scene.push(d(5.0, 0, 60))
        store.commit(scene.engine, 0)
        other = Engine()
        store.load(other, 1)

    assert list(other.series(A)) == []


def test_a_transaction_without_an_end_is_not_read(cluster: ThreadedHost, admin: AdminClient) -> None:
    with changelog(cluster) as store:
        scene = taken_over(store)
        scene.push(d(5.0, 0, 60))
        store.commit(scene.engine, 0)
        dying = TransactionalProducer(admin, f"{NAME}-0")
        dying.add([(NAME, 0)])
        dying.send({(NAME, 0): [Record(CLIENT + A, b"junk")]})

        again = taken_over(store)

    assert again.totals() == {"c": 5}


def test_forgotten_clients_leave_the_topic(cluster: ThreadedHost) -> None:
    with changelog(cluster) as store:
        scene = taken_over(store)
        scene.push(d(5.0, 0, 60))
        store.commit(scene.engine, 0)
        scene.engine.clients.forget(A)
        store.commit(scene.engine, 0)

        assert [key[:1] for key in store.records(0)] == [b"p"]


def test_a_large_state_is_committed_in_one_transaction(cluster: ThreadedHost) -> None:
    metrics = [d(1.0, 0, 60, number=number, text="x" * 500) for number in range(2_000)]
    with changelog(cluster) as store:
        scene = taken_over(store)
        scene.push(*metrics)
        store.commit(scene.engine, 0)

        assert len(taken_over(store).series()) == 2_000


def test_more_partitions_are_refused(cluster: ThreadedHost, admin: AdminClient) -> None:
    with changelog(cluster):
        admin.create_partitions({FLEET: NewPartitions(PARTITIONS + 2)})

    with (
        pytest.raises(StoreFailed, match=r"fleet has 6 partitions and fleet\.totals has 4"),
        changelog(cluster),
    ):
        pass


def test_more_partitions_are_refused_while_it_runs(cluster: ThreadedHost) -> None:
    with changelog(cluster) as store:
        scene = taken_over(store)
        scene.push(d(5.0, 0, 60))
        store.partitions_now = lambda: PARTITIONS + 2

        with pytest.raises(StoreFailed, match="fleet has 6 partitions"):
            store.commit(scene.engine, 0)


def test_a_topic_that_is_not_compacted_is_refused(cluster: ThreadedHost, admin: AdminClient) -> None:
    admin.create_topics([NewTopic(name=NAME, partitions=PARTITIONS)])

    with (
        pytest.raises(StoreFailed, match=f"cleanup.policy of {NAME} is delete"),
        changelog(cluster),
    ):
        pass


@dataclass
class Totals:
    """The totals of each client, in the order of their arrival at both processes."""

    of: dict[bytes, list[float]] = field(default_factory=lambda: defaultdict(list))

    def take(self, batch: Sequence[TelemetryRecord]) -> None:
        for record in batch:
            (point,) = points_of(MetricsData.FromString(record.payload.data))
            self.of[record.payload.client_instance_id].append(point.as_double)


CLIENTS = 8


def pushes(count: int) -> list[TelemetryRecord]:
    """Clients push in turn: 1, 2, 3..."""
    return [
        Scene().record(
            d(float(turn + 1), 60 * turn, 60 * turn + 60), at=60 * turn + 60, instance=bytes([client]) * 16
        )
        for turn in range(count // CLIENTS)
        for client in range(CLIENTS)
    ]


def engines(process: ThreadedForward) -> set[int]:
    """The partitions of which a process holds totals."""
    (runner,) = process.made.result(0).runners
    assert isinstance(runner.forwarder, CumulativeForwarder)
    return set(runner.forwarder.engines)


def test_totals_follow_the_partitions_between_processes(cluster: ThreadedHost) -> None:
    records, totals = pushes(1200), Totals()

    def forwarding() -> ThreadedForward:
        forwarder = CumulativeForwarder(FarSide(totals.take), TotalsSettings())
        return ThreadedForward(cluster.bootstrap, far_sides(all=forwarder))

    def arrived(count: int) -> None:
        turns = count // CLIENTS
        expected = turns * (turns + 1) / 2
        wait_until(
            lambda: len(totals.of) == CLIENTS and all(each[-1] == expected for each in totals.of.values()),
            lambda: (expected, {client[0]: each[-3:] for client, each in totals.of.items()}),
            60,
        )

    with forwarding() as first:
        fill(cluster.bootstrap, range(400), PARTITIONS, records)
        arrived(400)
        with forwarding() as second:
            fill(cluster.bootstrap, range(400, 800), PARTITIONS, records)
            until(lambda: len(first.owned) == len(second.owned) == 2, first, second)
            arrived(800)
            until(lambda: all(engines(each) <= each.owned for each in (first, second)), first, second)
        fill(cluster.bootstrap, range(800, 1200), PARTITIONS, records)
        arrived(1200)

    assert all(each == sorted(each) for each in totals.of.values())
