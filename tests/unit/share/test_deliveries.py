from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest

from odradek.share.acknowledgement import ACCEPT, Acknowledgement
from odradek.share.acquisition import Limits, LogBatch, Wanted
from odradek.share.deliveries import Deliveries, Delivery, StateRow
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

T = b"t" * 16
LIMITS = Limits(lock_ms=1_000)


@dataclass
class Store:
    """States in memory."""

    rows: dict[tuple[str, bytes, int], StateRow] = field(default_factory=dict)
    fails: bool = False

    def share_partition(self, group_id: str, topic_id: bytes, partition: int) -> StateRow | None:
        return self.rows.get((group_id, topic_id, partition))

    def put_share_partitions(self, rows: Iterable[StateRow]) -> None:
        if self.fails:
            raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        self.rows.update({(row[0], row[1], row[2]): row for row in rows})


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


@pytest.fixture
def store() -> Store:
    return Store({("g", T, index): ("g", T, index, 0, 0, b"") for index in range(2)})


@pytest.fixture
def deliveries(store: Store, clock: MockClock) -> Deliveries:
    return Deliveries(store, clock, clock.timer, lambda _: LIMITS)


def acquired(deliveries: Deliveries, index: int = 0, last: int = 9) -> Delivery:
    """Let member ``m`` hold the records up to an offset."""
    delivery = deliveries.get("g", (T, index))
    assert delivery is not None
    now_ms = deliveries.clock.monotonic_ms()
    assert delivery.partition.acquire("m", [LogBatch(0, last)], Wanted(500), LIMITS, now_ms)
    deliveries.locked(delivery, LIMITS, 10)
    return delivery


def test_a_partition_that_the_group_does_not_know(deliveries: Deliveries) -> None:
    assert deliveries.get("g", (T, 2)) is None
    assert deliveries.groups == {}


def test_the_start_offset_is_stored_before_it_moves(deliveries: Deliveries, store: Store) -> None:
    delivery = acquired(deliveries)
    delivery.partition.acknowledge("m", [Acknowledgement(0, 4, ACCEPT)], LIMITS, 0)
    deliveries.settle([delivery])
    assert (delivery.partition.start, store.rows["g", T, 0][3:5]) == (5, (0, 5))

    delivery.partition.acknowledge("m", [Acknowledgement(5, 5, ACCEPT)], LIMITS, 0)
    deliveries.settle([delivery])

    assert store.rows["g", T, 0][3:5] == (5, 1)


def test_locks_end_one_after_the_other_and_leave_no_timer(deliveries: Deliveries, clock: MockClock) -> None:
    delivery = acquired(deliveries)
    clock.advance(500)
    delivery.partition.acquire("n", [LogBatch(10, 19)], Wanted(500), LIMITS, clock.monotonic_ms())
    deliveries.locked(delivery, LIMITS, 10)
    assert len(clock.timer) == 1

    clock.advance(500)
    assert delivery.partition.held == 10
    clock.advance(500)

    assert delivery.partition.held == 0
    assert len(clock.timer) == 0
    assert (deliveries.acquired, deliveries.expired, deliveries.in_flight) == (20, 20, 20)


def test_what_cannot_be_stored_is_loaded_again(deliveries: Deliveries, store: Store) -> None:
    delivery = acquired(deliveries)
    delivery.partition.acknowledge("m", [Acknowledgement(0, 9, ACCEPT)], LIMITS, 0)
    woken: list[int] = []
    delivery.partition.listeners[lambda: woken.append(1)] = None
    store.fails = True

    with pytest.raises(ApiError):
        deliveries.settle([delivery])

    again = deliveries.get("g", (T, 0))
    assert again is not None
    assert (again.partition.start, again.partition.spans) == (0, [])
    assert woken == [1]


def test_a_forgotten_delivery_stores_nothing_more(
    deliveries: Deliveries, store: Store, clock: MockClock
) -> None:
    delivery = acquired(deliveries)
    before = dict(store.rows)

    deliveries.forget("g", None)
    deliveries.release("m", [delivery])
    clock.advance(1_000)

    assert store.rows == before
    assert len(clock.timer) == 0


def test_single_partitions_are_forgotten(deliveries: Deliveries) -> None:
    acquired(deliveries)
    acquired(deliveries, 1)

    deliveries.forget("g", [(T, 1), (T, 2)])
    assert list(deliveries.groups["g"]) == [(T, 0)]

    deliveries.forget("g", None)
    assert deliveries.groups == {}
