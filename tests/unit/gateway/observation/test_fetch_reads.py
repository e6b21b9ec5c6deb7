"""What a connection reads, from the Fetch requests that pass a gateway."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from odradek.gateway.observation import fetch_reads
from odradek.gateway.observation.fetch_reads import KEPT_BYTES, MOST_BYTES, FetchReads
from odradek.gateway.whole_requests import request_body
from odradek.lag.readers import LEFT_MS, Place
from odradek.testing.clock import MockClock
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from support.data_requests import fetch_request
from support.gateway_pair import FETCH, bare, request

ID = b"\1" * 16
EVERY_VERSION = range(FetchRequest.VERSIONS.first, FetchRequest.VERSIONS.last + 1)
FULL, OPENING = -1, 0


def key_of(version: int) -> str | bytes:
    return ID if version >= 13 else "orders"


def fetch(offsets: Mapping[int, int], *forgotten: int, epoch: int = FULL, **fields: Any) -> FetchRequest:
    """A request for partitions of a topic, and those that its session forgets."""
    rows = [FetchPartition(partition=index, fetch_offset=offset) for index, offset in offsets.items()]
    gone = [ForgottenTopic(topic="orders", topic_id=ID, partitions=list(forgotten))] if forgotten else []
    topics = [FetchTopic(topic="orders", topic_id=ID, partitions=rows)] if rows else []
    return FetchRequest(
        session_id=7, session_epoch=epoch, topics=topics, forgotten_topics_data=gone, **fields
    )


class Passing:
    """A connection whose requests are followed."""

    def __init__(self, version: int = 18) -> None:
        self.version = version
        self.clock = MockClock()
        self.reads = FetchReads(self.clock)

    def send(self, message: FetchRequest, version: int | None = None) -> None:
        version = self.version if version is None else version
        assert self.reads.note(version, b"before" + request(message, version, 1), 10) is None

    def offsets(self) -> dict[int, int]:
        """The positions of partitions of the topic."""
        key = key_of(self.version)
        found = self.reads.look().offsets
        assert {place[0] for place in found} <= {key}
        return {place[1]: offset for place, offset in found.items()}

    def left(self) -> set[int]:
        """The partitions that are not fetched now."""
        self.reads.look()
        return {index for _, index in self.reads.reading.left_ms}


@pytest.mark.parametrize("version", EVERY_VERSION)
def test_the_last_offset_of_each_partition_counts(version: int) -> None:
    passing = Passing(version)
    passing.send(fetch({0: 10, 3: 20}))
    passing.send(fetch({0: 11, 3: 20}))
    passing.send(fetch({3: 25}))

    assert passing.offsets() == {0: 11, 3: 25}


@pytest.mark.parametrize("version", range(7, FetchRequest.VERSIONS.last + 1))
def test_a_session_names_only_what_changes(version: int) -> None:
    passing = Passing(version)
    passing.send(fetch({0: 1, 1: 2, 2: 3}, epoch=OPENING))
    passing.send(fetch({}, epoch=1))
    passing.send(fetch({1: 9}, 2, epoch=2))

    assert passing.offsets() == {0: 1, 1: 9, 2: 3}
    passing.send(fetch({}, epoch=3))
    assert passing.left() == {2}
    passing.send(fetch({2: 4}, epoch=4))
    assert passing.offsets() == {0: 1, 1: 9, 2: 4}
    assert passing.left() == {0, 1, 2}, "nothing was sent since the last look"


def test_a_partition_with_much_in_the_client_keeps_its_position() -> None:
    """A client does not fetch a partition of which it has enough: in a session it forgets it."""
    passing = Passing()
    passing.send(fetch({0: 100, 1: 5}, epoch=OPENING))
    passing.send(fetch({1: 6}, 0, epoch=1))
    assert passing.offsets()[0] == 100
    passing.clock.advance(LEFT_MS)
    passing.send(fetch({1: 7}, epoch=2))
    assert passing.offsets() == {0: 100, 1: 7}
    passing.clock.advance(1)
    passing.send(fetch({1: 8}, epoch=3))
    assert passing.offsets() == {1: 8}


def test_what_is_kept_is_bounded() -> None:
    passing, chance = Passing(12), Random(1)
    expected: dict[int, int] = {}
    for number in range(3_000):
        some = dict.fromkeys(chance.sample(range(50), chance.randrange(1, 20)), number)
        expected |= some
        passing.send(fetch(some, epoch=number + 1))
        assert passing.reads.kept_bytes == sum(map(len, passing.reads.frames.values())) <= KEPT_BYTES

    assert passing.offsets() == expected
    assert passing.reads.frames == {}


def test_requests_for_the_same_partitions_replace_each_other() -> None:
    passing = Passing()
    for number in range(100):
        passing.send(fetch({0: number, 1: number}))
    assert len(passing.reads.frames) == 1

    passing.send(fetch({1: 1, 2: 2}))
    assert len(passing.reads.frames) == 2
    assert passing.offsets() == {0: 99, 1: 1, 2: 2}


def test_a_large_request_is_read_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []

    def counted(message: type[Any], version: int, frame: bytes) -> Any:
        read.append(len(frame))
        return request_body(message, version, frame)

    monkeypatch.setattr(fetch_reads, "request_body", counted)
    passing = Passing()
    for number in range(10):
        passing.send(fetch(dict.fromkeys(range(1_000), number)))
        passing.clock.advance(200)

    assert len(read) == 3, "the first one and one a second"
    assert passing.offsets() == dict.fromkeys(range(1_000), 5)


def test_a_request_in_pieces_is_followed_up_to_a_size() -> None:
    passing = Passing()
    whole = request(fetch({0: 1, 1: 2}), 18, 1)
    rest = passing.reads.note(18, whole[:40], 4)
    assert rest is not None
    rest(memoryview(whole)[40:50])
    assert passing.offsets() == {}
    rest(memoryview(whole)[50:])
    assert passing.offsets() == {0: 1, 1: 2}

    assert passing.reads.note(18, (MOST_BYTES + 1).to_bytes(4) + bytes(20), 4) is None


def malformed() -> dict[str, tuple[int, bytes]]:
    whole = request(fetch({0: 1}), 18, 1)
    names = request(fetch({0: 1}), 11, 1)
    return {
        "empty body": (12, bare(FETCH, 12, 1)),
        "zeros": (12, bare(FETCH, 12, 1, bytes(30))),
        "cut": (18, (len(whole) - 14).to_bytes(4) + whole[4:-10]),
        "cut before the topic": (11, (len(names) - 64).to_bytes(4) + names[4:-60]),
        "unknown version": (99, bare(FETCH, 99, 1, bytes(60))),
        "version of long ago": (3, bare(FETCH, 3, 1, bytes(60))),
        "tags": (18, bare(FETCH, 18, 1, b"\xff\xff\xff\x7f")),
        "client id past the end": (18, b"\0\0\0\x0c\0\x01\0\x12\0\0\0\x01\x7f\xff\0\0"),
    }


@pytest.mark.parametrize("what", malformed())
def test_what_is_malformed_tells_nothing_and_disturbs_nothing(what: str) -> None:
    version, frame = malformed()[what]
    passing = Passing()
    passing.reads.note(version, frame, 4)
    passing.send(fetch({0: 5}))

    assert passing.offsets() == {0: 5}


def named(*requests: FetchRequest) -> tuple[dict[Place, int], bool]:
    passing = Passing(11)
    for each in requests:
        passing.send(each)
    reading = passing.reads.look()
    return reading.offsets, reading.read_committed


@pytest.mark.parametrize(
    ("make", "committed"), [(lambda: fetch_request("t", isolation_level=1), True), (fetch_request, False)]
)
def test_isolation(make: Callable[..., FetchRequest], committed: bool) -> None:
    message = make() if committed else make("t")

    assert named(message) == ({("t", 0): 0}, committed)
