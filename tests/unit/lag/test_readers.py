"""Which position of a client counts, if several connections or clients have one."""

from __future__ import annotations

import pytest

from odradek.lag.group_lag import Granularity, PartitionLag
from odradek.lag.readers import CLOSED_MS, Place, Position, Reader, ReaderLag, ReaderTable, Reading
from odradek.lag.report import points_of, reader_instance
from odradek.lag.standing import Ends, standing

READER = Reader("app", "10.0.0.1", "g", "librdkafka", "2.16.0", "User:a", "gateway-1")
OTHER = READER._replace(client_id="other")
NAMES: dict[str | bytes, str] = {"t": "t", b"t": "t"}
T0: Place = ("t", 0)


def reading(offset: int, fetched_ms: int, *, place: Place = T0, left_ms: int | None = None) -> Reading:
    made = Reading()
    made.offsets[place] = offset
    made.fetched_ms = fetched_ms
    if left_ms is not None:
        made.left_ms[place] = left_ms
    return made


def table(*readings: tuple[Reader, Reading], most: int = 100) -> ReaderTable:
    made = ReaderTable(NAMES.get, most)
    for each in readings:
        made.add(*each)
    made.close()
    return made


def offsets(made: ReaderTable) -> dict[Reader, int]:
    return {reader: known["t", 0].offset for reader, known in made.positions.items()}


def test_of_connections_of_one_client_the_last_that_fetched_counts() -> None:
    first, second = reading(10, 100), reading(7, 200, place=(b"t", 0))

    assert offsets(table((READER, first), (READER, second))) == {READER: 7}
    assert offsets(table((READER, second), (READER, first))) == {READER: 7}


def test_a_partition_that_is_fetched_counts_before_one_that_was_left_later() -> None:
    left, fetched = reading(10, 300, left_ms=250), reading(7, 200)

    assert offsets(table((READER, left), (READER, fetched))) == {READER: 7}
    assert offsets(table((READER, fetched), (READER, left))) == {READER: 7}


def test_a_partition_counts_until_another_member_of_the_group_fetches_it() -> None:
    left, fetched = reading(10, 300, left_ms=250), reading(12, 300)
    of_other_group = READER._replace(client_id="third", group="h")
    without = READER._replace(group="")

    assert offsets(table((READER, left), (of_other_group, fetched))) == {READER: 10, of_other_group: 12}
    assert offsets(table((OTHER, fetched), (READER, left))) == {OTHER: 12}
    assert offsets(table((without, left), (OTHER, fetched))) == {without: 10, OTHER: 12}


def test_a_closed_connection_counts_for_a_minute() -> None:
    closed = reading(10, 100)
    closed.closed_ms = 200

    assert not closed.is_over(200 + CLOSED_MS)
    assert closed.is_over(201 + CLOSED_MS)
    assert table((READER, closed)).positions[READER]["t", 0] == Position(10, False, 200, False)
    assert offsets(table((READER, closed), (OTHER, reading(11, 300)))) == {OTHER: 11}


def test_unknown_topics_and_too_many_positions_are_left_out() -> None:
    unknown = reading(1, 100, place=(b"?", 0))
    made = table((READER, unknown), (READER, reading(1, 100)), (OTHER, reading(2, 100)), most=1)

    assert offsets(made) == {READER: 1}
    assert made.left_out == 1


@pytest.mark.parametrize("granularity", Granularity)
def test_the_points_of_a_client(granularity: Granularity) -> None:
    ends = Ends(0, 50, 40)
    lags = [PartitionLag(index, 30, standing(30, ends), 2_000 * (index + 1)) for index in (1, 0)]
    found = [
        ("t", lags[0], Position(30, False, 1_000, True)),
        ("t", lags[1], Position(30, False, 400, False)),
    ]
    lag = ReaderLag.of(READER, found, 1_000)
    shown = {(name, at.count(b"partition")): value for (name, at), value in points_of(lag, granularity)}

    expected = {("client.library", 0): 1, ("client.lag.sum", 0): 40, ("client.lag.time.max", 0): 4.0}
    if granularity is Granularity.PARTITION:
        expected |= {
            ("client.lag", 1): 20,
            ("client.position", 1): 30,
            ("client.lag.time", 1): 4.0,
            ("client.fetch.age", 1): 0.0,
        }
    assert shown == expected
    assert lag.shortest_ms == 600
    assert lag.ages_ms == {("t", 0): 600}


def test_a_client_is_an_instance_of_its_gateway() -> None:
    mine = reader_instance("c", READER)

    assert mine == reader_instance("c", READER)
    assert len({mine, reader_instance("d", READER), reader_instance("c", READER._replace(observer="2"))}) == 3
