"""A client that reads through a session learns as much as a client without one."""

from __future__ import annotations

from itertools import count

from hypothesis import example, given, settings
from hypothesis import strategies as st

from odradek.broker.fetch.fetch_session import (
    MIN_EVICTION_MS,
    CachedPartition,
    FetchSessionCache,
    PartitionKey,
)
from odradek.wire.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from support.batches import NOW_MS, batch_of
from support.broker import BrokerClient, make_broker
from support.examples import examples

PARTITIONS = 3
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, PARTITIONS - 1)),
        st.tuples(st.just("add"), st.integers(0, PARTITIONS)),
        st.tuples(st.just("forget"), st.integers(0, PARTITIONS)),
        st.tuples(st.just("fetch"), st.integers(1, 400)),
        st.tuples(st.just("reopen"), st.just(0)),
    ),
    max_size=30,
)
BATCH = batch_of(b"v" * 40)


class SessionClient:
    """Follows Kafka's FetchSessionHandler: sends changed partitions, and remembers the answers."""

    def __init__(self, client: BrokerClient, topic_id: bytes) -> None:
        self.client = client
        self.topic_id = topic_id
        self.session_id = self.epoch = 0
        self.positions: dict[int, int] = {0: 0}
        self.sent: dict[int, int] = {}
        self.told: dict[int, tuple[int, int]] = {}
        self.records: dict[int, int] = dict.fromkeys(range(PARTITIONS), 0)

    def fetch(self, max_bytes: int) -> FetchResponse:
        whole = self.epoch == 0
        changed = {p: o for p, o in self.positions.items() if whole or self.sent.get(p) != o}
        gone = [] if whole else [p for p in self.sent if p not in self.positions]
        for partition in gone:
            self.told.pop(partition, None)
        request = FetchRequest(
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self.session_id,
            session_epoch=self.epoch,
            topics=[
                FetchTopic(
                    topic_id=self.topic_id,
                    partitions=[
                        FetchPartition(partition=p, fetch_offset=o, partition_max_bytes=1 << 20)
                        for p, o in changed.items()
                    ],
                )
            ],
            forgotten_topics_data=[ForgottenTopic(topic_id=self.topic_id, partitions=gone)],
        )
        response = self.client.send(request)
        assert isinstance(response, FetchResponse)
        self.take(response, whole)
        return response

    def take(self, response: FetchResponse, whole: bool) -> None:
        assert response.error_code == 0
        self.sent = dict(self.positions)
        self.session_id = response.session_id
        self.epoch = self.epoch + 1 if response.session_id else 0
        rows = {row.partition_index: row for topic in response.responses for row in topic.partitions}
        if whole:
            self.told.clear()
            assert set(rows) == set(self.positions)
        assert set(rows) <= set(self.positions)
        for index, row in rows.items():
            self.told[index] = (row.error_code, row.high_watermark)
            if row.records:
                taken = len(row.records) // len(BATCH)
                self.positions[index] += taken
                self.records[index] += taken


@settings(max_examples=examples(60))
@given(steps=STEPS)
@example(steps=[("fetch", 1), ("forget", 0), ("add", 0)])
def test_a_session_returns_the_same_as_full_requests(steps: list[tuple[str, int]]) -> None:
    client = BrokerClient(make_broker())
    topic = client.broker.topics.create("t", PARTITIONS, {})
    reader = SessionClient(client, topic.id)
    for what, number in steps:
        if what == "append":
            topic.partitions[number].append(BATCH, now_ms=NOW_MS)
        elif what == "add":
            reader.positions.setdefault(number, reader.records.get(number, 0))
        elif what == "forget":
            reader.positions.pop(number, None)
        elif what == "reopen":
            reader.epoch = 0
        else:
            reader.fetch(number)

    # read as long as there are records: then the session knows the end of every partition
    for _ in range(len(steps) + 2):
        reader.fetch(1)

    for index in reader.positions:
        known = index < PARTITIONS
        end = topic.partitions[index].log_end_offset if known else -1
        assert reader.told[index] == (0 if known else 3, end)
        assert reader.positions[index] == max(end, 0)


@settings(max_examples=examples(60))
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["open", "use", "close"]), st.integers(0, 9), st.integers(0, MIN_EVICTION_MS)
        ),
        max_size=60,
    ),
    slots=st.integers(0, 4),
)
def test_the_cache_stays_within_its_bounds(steps: list[tuple[str, int, int]], slots: int) -> None:
    cache = FetchSessionCache(slots, count(1).__next__, max_partitions=25)
    now_ms = 0
    for what, number, passed_ms in steps:
        now_ms += passed_ms
        if what == "open":
            rows: dict[PartitionKey, CachedPartition] = {
                ("t", p): CachedPartition("t", bytes(16), FetchPartition()) for p in range(number)
            }
            cache.open(rows, uses_topic_ids=False, now_ms=now_ms)
        elif cache.sessions:
            session_id = sorted(cache.sessions)[number % len(cache)]
            if what == "use":
                cache.touch(cache.sessions[session_id], now_ms)
            else:
                cache.remove(session_id)

        sizes = {each.id: len(each.partitions) for each in cache.sessions.values()}
        assert len(cache) <= slots
        assert cache.partitions == sum(sizes.values()) <= 25
        assert cache.evictable == sorted(cache.evictable)
        assert all(sizes[session_id] == size for size, session_id in cache.evictable)
        used = [each.last_used_ms for each in cache.sessions.values()]
        assert used == sorted(used)
