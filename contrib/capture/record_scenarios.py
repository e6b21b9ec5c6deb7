"""Scenarios of the APIs about records: produce, fetch with and without sessions, offsets."""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable
from typing import Any

import crc32c
from contrib.capture.golden import Recorder, Scenario
from contrib.capture.host_requests import request
from contrib.capture.topic_scenarios import APPLY_S, DYNAMIC_IDS, NOBODY, create, delete_all, new

from odradek.wire.codec import decode
from odradek.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch

TIMESTAMP_MS = 1_700_000_000_000
DYNAMIC_SESSIONS = "dynamic: the ids of topics and of sessions"


def batch(
    *values: bytes,
    timestamp_ms: int = TIMESTAMP_MS,
    key: bytes | None = b"k",
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """A batch with a record for each value; ``producer`` is its id, its epoch and the first sequence."""
    producer_id, producer_epoch, base_sequence = producer
    return build_batch(
        [Record(key, value, timestamp_ms) for value in values],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
    )


def patched(data: bytes, at: int, *fields: bytes) -> bytes:
    """A batch with other bytes at an offset, and the CRC that goes with them."""
    changed = bytearray(data)
    new_bytes = b"".join(fields)
    changed[at : at + len(new_bytes)] = new_bytes
    changed[17:21] = struct.pack(">I", crc32c.crc32c(bytes(changed[21:])))
    return bytes(changed)


def put(data: bytes, at: int, value: int) -> bytes:
    """The same with one byte, and the CRC as it was."""
    changed = bytearray(data)
    changed[at] = value
    return bytes(changed)


def send(
    say: Recorder,
    label: str,
    topic: tuple[str, bytes],
    records: bytes | None,
    partition: int = 0,
    version: int = 13,
    acks: int = -1,
) -> None:
    name, topic_id = topic
    data = PartitionProduceData(index=partition, records=records)
    message = ProduceRequest(
        acks=acks,
        timeout_ms=1000,
        topic_data=[TopicProduceData(name=name, topic_id=topic_id, partition_data=[data])],
    )
    say.ask(label, request(message, version))


def produced(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    ids = create(
        say,
        "topics",
        new("plain", 1),
        new("compacted", 1, cleanup_policy="compact"),
        new("small", 1, max_message_bytes="100"),
        new("bounded", 1, message_timestamp_before_max_ms="1000"),
    )
    plain, good = ("plain", ids["plain"]), batch(b"a", b"b")
    send(say, "a batch", plain, good)
    send(say, "no bytes", plain, b"")
    send(say, "two batches", plain, good + good)
    send(say, "a batch that is cut", plain, good[:-1])
    send(say, "a header that is cut", plain, good[:40])
    send(say, "magic 1", plain, put(good, 16, 1))
    send(say, "magic 3", plain, put(good, 16, 3))
    send(say, "a wrong CRC", plain, put(good, len(good) - 1, 0x7F))
    send(say, "base offset 5", plain, put(good, 7, 5))
    for label, at, value in (
        ("last offset delta 5", 23, struct.pack(">i", 5)),
        ("0 records", 57, struct.pack(">i", 0)),
        ("3 records", 57, struct.pack(">i", 3)),
        ("-1 records", 57, struct.pack(">i", -1)),
        ("a control batch", 21, struct.pack(">h", 0x20)),
        ("a transactional batch", 21, struct.pack(">h", 0x10)),
        ("a producer without sequence", 43, struct.pack(">qhi", 5, 0, -1)),
    ):
        send(say, label, plain, patched(good, at, value))
    send(say, "no key in a compacted topic", ("compacted", ids["compacted"]), batch(b"a", b"b", key=None))
    send(say, "the same, version 7", ("compacted", b""), batch(b"a", key=None), version=7)
    send(say, "too large", ("small", ids["small"]), batch(b"x" * 100))
    send(say, "too old", ("bounded", ids["bounded"]), batch(b"a", b"b"))
    send(say, "no timestamp", ("bounded", ids["bounded"]), batch(b"a", timestamp_ms=-1))
    send(say, "an unknown partition", plain, good, partition=9)
    send(say, "an unknown id", ("", NOBODY), good)
    send(say, "an unknown name", ("nope", b""), good, version=12)
    send(say, "acks 5", plain, good, acks=5)
    send(say, "acks -2", plain, good, acks=-2)
    delete_all(say, "plain", "compacted", "small", "bounded")


def idempotent(say: Recorder) -> None:
    say.note(DYNAMIC_IDS)
    ids = create(say, "a topic", new("plain", 1))
    plain = ("plain", ids["plain"])
    for label, epoch, sequence in (
        ("begins with 5", 0, 5),
        ("the same again", 0, 5),
        ("a gap", 0, 7),
        ("the next", 0, 6),
        ("a new epoch, not from 0 on", 1, 7),
        ("a new epoch", 1, 0),
        ("the old epoch", 0, 7),
    ):
        send(say, label, plain, batch(b"a", producer=(900, epoch, sequence)))
    for sequence in range(1, 7):
        send(say, f"sequence {sequence}", plain, batch(b"a", producer=(900, 1, sequence)))
    send(say, "five back", plain, batch(b"a", producer=(900, 1, 2)))
    send(say, "six back", plain, batch(b"a", producer=(900, 1, 1)))
    delete_all(say, "plain")


class Fetcher:
    """Fetches on one connection, from topics whose ids are known."""

    def __init__(self, say: Recorder, ids: dict[str, bytes], version: int = 17) -> None:
        self.say = say
        self.ids = ids
        self.version = version

    def topic(self, name: str, *partitions: FetchPartition) -> FetchTopic:
        return FetchTopic(topic=name, topic_id=self.ids.get(name, NOBODY), partitions=list(partitions))

    def forgotten(self, name: str, *partitions: int) -> ForgottenTopic:
        return ForgottenTopic(topic=name, topic_id=self.ids[name], partitions=list(partitions))

    def ask(
        self,
        label: str,
        *topics: FetchTopic,
        session: tuple[int, int] = (0, -1),
        version: int | None = None,
        **fields: Any,
    ) -> int:
        """The session's id."""
        chosen = version or self.version
        message = FetchRequest(
            min_bytes=1, session_id=session[0], session_epoch=session[1], topics=list(topics), **fields
        )
        body = self.say.ask(label, request(message, chosen))
        return decode(FetchResponse, chosen, body, 1 if chosen >= 12 else 0).session_id


def at(partition: int = 0, offset: int = 0, **fields: Any) -> FetchPartition:
    return FetchPartition(
        partition=partition,
        fetch_offset=offset,
        partition_max_bytes=fields.pop("max_bytes", 1 << 20),
        **fields,
    )


def fill(say: Recorder, topic: tuple[str, bytes], partitions: Iterable[int]) -> None:
    for partition in partitions:
        send(say, f"append to {topic[0]}-{partition}", topic, batch(b"x" * 100), partition)


def fetched(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_IDS)
        ids = create(say, "a topic", new("f", 3))
        fill(say, ("f", ids["f"]), (0, 0, 1))
        fetch = Fetcher(say, ids, version)
        fetch.ask("all", fetch.topic("f", at(0), at(1), at(2)))
        fetch.ask("from the second batch", fetch.topic("f", at(0, 1)))
        fetch.ask("one byte of each", fetch.topic("f", at(0, max_bytes=1), at(1, max_bytes=1)))
        fetch.ask("one byte of all", fetch.topic("f", at(0), at(1)), max_bytes=1)
        fetch.ask("read committed", fetch.topic("f", at(0)), isolation_level=1)
        fetch.ask("the end", fetch.topic("f", at(0, 2)))
        fetch.ask("nothing")
        fetch.ask("past the end", fetch.topic("f", at(0, 3), at(1)))
        fetch.ask("offset -1", fetch.topic("f", at(0, -1)))
        fetch.ask("a partition twice", fetch.topic("f", at(0), at(0)))
        fetch.ask(
            "unknown ones",
            fetch.topic("f", at(7), at(1)),
            fetch.topic("nope", at(0)),
            fetch.topic("f", at(8)),
        )
        fetch.ask("isolation level 3", fetch.topic("f", at(0)), isolation_level=3)
        if version >= 9:
            fetch.ask("an epoch ahead", fetch.topic("f", at(0, current_leader_epoch=7)))
            fetch.ask("the epoch", fetch.topic("f", at(0, current_leader_epoch=0)))
        if version >= 12:
            fetch.ask("a last epoch ahead", fetch.topic("f", at(0, last_fetched_epoch=5)))
            fetch.ask("the last epoch", fetch.topic("f", at(0, last_fetched_epoch=0)))
        delete_all(say, "f")

    return scenario


def session(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_SESSIONS)
        ids = create(say, "topics", new("f", 3), new("g", 2))
        topic = ("f", ids["f"])
        fill(say, topic, (0,))
        fetch = Fetcher(say, ids, version)
        first = fetch.ask("open", fetch.topic("f", at(0), at(1)), fetch.topic("g", at(0)), session=(0, 0))
        fetch.ask("go on", session=(first, 1))
        fetch.ask("a new position", fetch.topic("f", at(0, 1)), session=(first, 2))
        fetch.ask("nothing is new", session=(first, 3))
        fill(say, topic, (1,))
        fetch.ask("records", session=(first, 4))
        fetch.ask("a new position", fetch.topic("f", at(1, 1)), session=(first, 5))
        fetch.ask("an epoch ahead", session=(first, 9))
        fetch.ask("an epoch behind", session=(first, 4))
        fetch.ask("a negative epoch", session=(first, -5))
        fetch.ask("the right epoch", session=(first, 6))
        fetch.ask("an unknown session", session=(0, 1))
        fetch.ask("the other way of naming topics", session=(first, 7), version=12 if version > 12 else 13)
        gone = [fetch.forgotten("g", 0, 1), fetch.forgotten("f", 1)]
        fetch.ask("forget", session=(first, 7), forgotten_topics_data=gone)
        fill(say, topic, (1, 0))
        fetch.ask("records in both", session=(first, 8))
        fetch.ask("past the end", fetch.topic("f", at(0, 99)), session=(first, 9))
        fetch.ask("once more", session=(first, 10))
        fetch.ask("an unknown partition", fetch.topic("f", at(9)), session=(first, 11))
        fetch.ask("an unknown topic", fetch.topic("nope", at(0)), session=(first, 12))
        fetch.ask("all is well", fetch.topic("f", at(0, 2)), session=(first, 13))
        second = fetch.ask("open another in its place", fetch.topic("f", at(0)), session=(first, 0))
        fetch.ask("the first is gone", session=(first, 14))
        fetch.ask("close", fetch.topic("f", at(0)), session=(second, -1))
        fetch.ask("it is gone", session=(second, 1))
        empty = fetch.ask("open an empty one", session=(0, 0))
        fetch.ask("add to it", fetch.topic("f", at(0)), session=(empty, 1))
        fetch.ask("forget all", session=(empty, 2), forgotten_topics_data=[fetch.forgotten("f", 0)])
        fetch.ask("it is gone", session=(empty, 3))
        delete_all(say, "f", "g")

    return scenario


def session_order(say: Recorder) -> None:
    say.note(DYNAMIC_SESSIONS)
    ids = create(say, "a topic", new("f", 3))
    fill(say, ("f", ids["f"]), (0, 0, 1, 1, 2, 2))
    fetch = Fetcher(say, ids)
    size = len(batch(b"x" * 100))  # Kafka would cut a second one
    opened = fetch.ask("open", fetch.topic("f", at(0), at(1), at(2)), session=(0, 0), max_bytes=size)
    for epoch in range(1, 7):
        fetch.ask("go on", session=(opened, epoch), max_bytes=size)
    delete_all(say, "f")


def session_recreated(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        say.note(DYNAMIC_SESSIONS)
        ids = create(say, "a topic", new("f", 1))
        fetch = Fetcher(say, ids, version)
        opened = fetch.ask("open", fetch.topic("f", at(0)), session=(0, 0))
        delete_all(say, "f")
        fetch.ask("the topic is gone", session=(opened, 1))
        create(say, "another of its name", new("f", 1))
        time.sleep(APPLY_S)
        fetch.ask("the topic is another", session=(opened, 2))
        delete_all(say, "f")

    return scenario


def list_offsets(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        def ask(label: str, *partitions: ListOffsetsPartition, topic: str = "l", **fields: Any) -> None:
            topics = [ListOffsetsTopic(name=topic, partitions=list(partitions))]
            say.ask(label, request(ListOffsetsRequest(topics=topics, **fields), version))

        say.note(DYNAMIC_IDS)
        ids = create(say, "a topic", new("l", 2))
        send(say, "three records", ("l", ids["l"]), batch(b"a", b"b", b"c"))
        send(say, "one that is older", ("l", ids["l"]), batch(b"d", timestamp_ms=TIMESTAMP_MS - 1000))
        send(say, "one that is newer", ("l", ids["l"]), batch(b"e", timestamp_ms=TIMESTAMP_MS + 1000))
        times = (TIMESTAMP_MS, TIMESTAMP_MS - 1000, TIMESTAMP_MS - 500, TIMESTAMP_MS + 1, TIMESTAMP_MS + 1001)
        for timestamp in (-1, -2, -3, -4, -5, -6, -7, 0, *times):
            ask(f"timestamp {timestamp}", ListOffsetsPartition(partition_index=0, timestamp=timestamp))
        for timestamp in (-1, -2, -3, -4, 0):
            ask(f"{timestamp} of nothing", ListOffsetsPartition(partition_index=1, timestamp=timestamp))
        latest = ListOffsetsPartition(partition_index=0, timestamp=-1)
        ask("a partition twice", latest, ListOffsetsPartition(partition_index=0, timestamp=-2))
        ask("an unknown partition", ListOffsetsPartition(partition_index=8, timestamp=-1))
        ask("an unknown topic", latest, topic="nope")
        if version >= 2:
            ask("read committed", latest, isolation_level=1)
            ask("isolation level 7", latest, isolation_level=7)
        if version >= 4:
            for epoch in (0, 3, -4):
                partition = ListOffsetsPartition(partition_index=0, timestamp=-1, current_leader_epoch=epoch)
                ask(f"epoch {epoch}", partition)
        delete_all(say, "l")

    return scenario


def epochs(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        def ask(label: str, *partitions: OffsetForLeaderPartition, topic: str = "e") -> None:
            topics = [OffsetForLeaderTopic(topic=topic, partitions=list(partitions))]
            say.ask(label, request(OffsetForLeaderEpochRequest(topics=topics), version))

        say.note(DYNAMIC_IDS)
        ids = create(say, "a topic", new("e", 2))
        send(say, "two records", ("e", ids["e"]), batch(b"a", b"b"))
        for epoch in (0, 1, -1, -5):
            ask(f"epoch {epoch}", OffsetForLeaderPartition(partition=0, leader_epoch=epoch))
        ask("an empty partition", OffsetForLeaderPartition(partition=1))
        for epoch in (0, 5, -7):
            ask(f"in epoch {epoch}", OffsetForLeaderPartition(partition=0, current_leader_epoch=epoch))
        ask("a partition twice", OffsetForLeaderPartition(partition=0), OffsetForLeaderPartition(partition=0))
        ask("an unknown partition", OffsetForLeaderPartition(partition=9))
        ask("an unknown topic", OffsetForLeaderPartition(partition=0), topic="nope")
        delete_all(say, "e")

    return scenario


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "produce_v13_produced": ("what is taken and what is not", produced),
    "produce_v13_idempotent": ("sequences and epochs", idempotent),
    **{f"fetch_v{version}_fetched": ("without a session", fetched(version)) for version in (4, 12, 17)},
    **{f"fetch_v{version}_session": ("a session", session(version)) for version in (12, 17)},
    "fetch_v17_session_order": ("none starves", session_order),
    **{
        f"fetch_v{version}_session_recreated": (
            "a topic with the name of another",
            session_recreated(version),
        )
        for version in (12, 17)
    },
    **{
        f"list_offsets_v{version}_listed": ("each timestamp", list_offsets(version)) for version in (1, 8, 11)
    },
    **{f"offset_for_leader_epoch_v{version}_answered": ("one epoch", epochs(version)) for version in (2, 4)},
}
