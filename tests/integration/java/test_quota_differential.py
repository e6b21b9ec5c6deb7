"""The same scripted loads under the same quotas, on Apache Kafka and on the host, side by side.

Both have three windows instead of eleven, only to make it shorter. ``pytest -s`` shows the table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from contrib.capture.kafka_node import kafka_node

from odradek.client.admin import AdminClient
from odradek.client.connection import Connection
from odradek.client.resources import NewTopic
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from odradek.wire.messages.metadata import MetadataRequest
from support.batches import batch_of
from support.data_requests import produce_request
from support.hosts import serving
from support.progress import Progress

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(300)]

QUOTA_BYTES_PER_S = 1_000_000
REQUEST_BYTES = 50_000
FILLED = 600
"""Requests whose records can be fetched."""
SECONDS, LEAST = 12, 10
TOPIC = "load"
ATTEMPTS = 3
WINDOWS = ("quota.window.num=3",)
REFUSED = ErrorCode.THROTTLING_QUOTA_EXCEEDED


@dataclass(slots=True)
class Seen:
    """The client's view of one load."""

    amount: float = 0
    seconds: float = 0
    throttles_ms: list[int] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    due_ms: list[float] = field(default_factory=list)
    """When the throttle times are over, from the begin of the load."""

    @property
    def rate(self) -> float:
        return self.amount / self.seconds

    @property
    def throttled_ms(self) -> int:
        """The sum of the throttle times that the client was told."""
        return sum(self.throttles_ms)

    @property
    def rate_while_throttled(self) -> float:
        """The rate without the time in which the client, the broker or the machine was late: higher than
        `rate`, and on a quiet machine hardly so.
        """
        return max(self.rate, self.amount * 1000 / self.throttled_ms)

    def got(self, amount: float, throttle_ms: int) -> None:
        """Add a response."""
        self.amount += amount
        self.throttles_ms.append(throttle_ms)
        self.progress.arrived(amount)
        self.progress.throttled(throttle_ms / 1000)

    def __str__(self) -> str:
        if REFUSED in self.codes:
            return f"throttled {self.throttles_ms} ms"
        count = sum(throttle_ms > 0 for throttle_ms in self.throttles_ms)
        return f"{self.rate:12,.1f}/s  {count:4} throttles, {self.throttled_ms:6} ms in all"


Step = Callable[[Connection, Seen], None]
"""One request; its error code and throttle time."""


def produce(connection: Connection) -> tuple[int, int]:
    """The error code and throttle time of one request."""
    batch = batch_of(b"v" * REQUEST_BYTES, timestamp_ms=int(time.time() * 1000))  # retention removes old ones
    answer = connection.send(produce_request(TOPIC, batch, acks=1), most_version=12)
    return answer.responses[0].partition_responses[0].error_code, answer.throttle_time_ms


def fill(connection: Connection) -> None:
    """Produce the records to fetch. The leader of a new partition is not available at once."""
    until_s, filled = time.monotonic() + 30, 0
    while filled < FILLED:
        code, _ = produce(connection)
        assert code == 0 or (filled == 0 and time.monotonic() < until_s)
        filled += code == 0


def produced(connection: Connection, seen: Seen) -> None:
    code, throttle_ms = produce(connection)
    assert code == 0
    seen.got(REQUEST_BYTES, throttle_ms)


def fetched(connection: Connection, seen: Seen) -> None:
    """Fetch the next batch, or the first again after the last."""
    offset = len(seen.codes) % FILLED
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        session_epoch=-1,
        topics=[FetchTopic(topic=TOPIC, partitions=[wanted])],
    )
    answer = connection.send(request, most_version=12)
    parts = [row for topic in answer.responses for row in topic.partitions]
    seen.codes += [row.error_code for row in parts]
    assert not any(seen.codes[-1:])
    seen.got(sum(len(row.records or b"") for row in parts), answer.throttle_time_ms)


def asked(connection: Connection, seen: Seen) -> None:
    answer = connection.send(MetadataRequest())
    seen.got(1, answer.throttle_time_ms)


def for_some_time(step: Step, bootstrap: str, client_id: str) -> Seen:
    """Send one request after the other, each as soon as the broker reads it; `LEAST` or more."""
    host, _, port = bootstrap.rpartition(":")
    seen, begin_s = Seen(), time.monotonic()
    with Connection(host, int(port), client_id) as connection:
        while (now_s := time.monotonic()) < begin_s + SECONDS or len(seen.throttles_ms) < LEAST:
            step(connection, seen)
    seen.seconds = now_s - begin_s
    return seen


def produced_by_librdkafka(bootstrap: str, client_id: str) -> Seen:
    """Send as fast as the broker allows."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    seen, begin_s = Seen(), time.monotonic()
    value = b"v" * (REQUEST_BYTES // 5 - 100)

    def delivered(error: object, _message: object) -> None:
        seen.amount += 0 if error else len(value)
        seen.progress.arrived(0)

    def throttled(event: Any) -> None:
        seen.throttles_ms.append(round(event.throttle_time * 1000))
        seen.progress.throttled(event.throttle_time)

    producer = confluent_kafka.Producer({
        "bootstrap.servers": bootstrap, "client.id": client_id, "linger.ms": 5,
        "batch.size": REQUEST_BYTES, "queue.buffering.max.kbytes": 1_000, "log_level": 3,
        "throttle_cb": throttled,
    })  # fmt: skip
    while (now_s := time.monotonic()) < begin_s + SECONDS:
        try:
            producer.produce(TOPIC, value, partition=0, on_delivery=delivered)
            producer.poll(0)
        except BufferError:
            producer.poll(0.05)
    seen.seconds = now_s - begin_s
    producer.purge()
    return seen


def created(bootstrap: str, client_id: str) -> Seen:
    """Create partitions at two per second: 22 at once, then so many more that no pause makes up for them, and
    twice more as an old client.
    """
    host, _, port = bootstrap.rpartition(":")
    seen, begin_s = Seen(), time.monotonic()
    for number, (version, count) in enumerate([(7, 10), (7, 10), (7, 50), (7, 10), (5, 10), (5, 10)]):
        topic = CreatableTopic(name=f"{client_id}-{number}", num_partitions=count, replication_factor=1)
        request = CreateTopicsRequest(topics=[topic], timeout_ms=30_000)
        with Connection(host, int(port), client_id) as connection:  # the others are not read for a while
            answer = connection.send(request, most_version=version)
        seen.codes.append(answer.topics[0].error_code)
        seen.throttles_ms.append(answer.throttle_time_ms)
        if answer.throttle_time_ms:
            seen.due_ms.append((time.monotonic() - begin_s) * 1000 + answer.throttle_time_ms)
        seen.amount += count * (not answer.topics[0].error_code)
    seen.seconds = time.monotonic() - begin_s
    return seen


LOADS: dict[str, tuple[str, float, Callable[[str, str], Seen]]] = {
    "produce": ("producer_byte_rate", QUOTA_BYTES_PER_S, partial(for_some_time, produced)),
    "librdkafka": ("producer_byte_rate", QUOTA_BYTES_PER_S, produced_by_librdkafka),
    "fetch": ("consumer_byte_rate", QUOTA_BYTES_PER_S, partial(for_some_time, fetched)),
    "request": ("request_percentage", 0.0001, partial(for_some_time, asked)),
    "mutation-0": ("controller_mutation_rate", 2, created),
    "mutation-1": ("controller_mutation_rate", 2, created),
    "mutation-2": ("controller_mutation_rate", 2, created),
}
"""The key and value of the quota, and the load."""


def prepare(bootstrap: str) -> None:
    """Fill the topic, and set the quotas of clients named after the load."""
    host, _, port = bootstrap.rpartition(":")
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(name=TOPIC, partitions=1, replication_factor=1)])
        with Connection(host, int(port), "filler") as connection:
            fill(connection)
        admin.alter_client_quotas({
            ClientQuotaEntity(client_id=load): {key: value} for load, (key, value, _) in LOADS.items()
        })  # fmt: skip
        time.sleep(1)  # until Kafka's broker has heard of it from its controller


@dataclass(slots=True)
class SideBySide:
    """Apache Kafka and the host, under the same loads at the same time."""

    bootstraps: tuple[str, str]
    pool: ThreadPoolExecutor

    def run(self, load: str) -> tuple[Seen, Seen]:
        """The results of a load with Kafka and with the host."""
        _, _, put = LOADS[load]
        theirs, ours = self.pool.map(put, self.bootstraps, (load, load))
        print(f"\n{load:12}Kafka: {theirs!s:50}host: {ours}")
        return theirs, ours


@pytest.fixture(scope="module")
def both(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SideBySide]:
    """Both brokers, with quotas set."""
    settings = [part for window in WINDOWS for part in ("--set", window)]
    with (
        kafka_node(overrides=WINDOWS) as node,
        serving(tmp_path_factory.mktemp("host") / "data", *settings) as serve,
        ThreadPoolExecutor(2) as pool,
    ):
        side_by_side = SideBySide((f"127.0.0.1:{node.port}", serve.bootstrap), pool)
        list(pool.map(prepare, side_by_side.bootstraps))
        yield side_by_side


@pytest.mark.parametrize(("load", "noise"), [("produce", 0.05), ("librdkafka", 0.2), ("fetch", 0.25)])
def test_bytes_flow_at_the_same_rate(both: SideBySide, load: str, noise: float) -> None:
    """Bytes come in bursts, and a burst more or less is a sixth of the total: a load that differs is measured
    again. On a busy machine clients send later than they were told, so their rates are lower and their
    throttle times are shorter; neither broker lets more through than the other one's throttle times would.
    """
    for _ in range(ATTEMPTS):
        theirs, ours = both.run(load)
        wrong = [
            (one.rate, other.rate_while_throttled)
            for one, other in ((ours, theirs), (theirs, ours))
            if one.rate > (1 + noise) * other.rate_while_throttled
        ]
        if not wrong:
            break

    assert wrong == []


def test_requests_wait_for_the_same_time(both: SideBySide) -> None:
    """Every request exceeds the quota by far, and no client waits for longer than a window."""
    theirs, ours = both.run("request")

    assert theirs.throttles_ms[:LEAST] == ours.throttles_ms[:LEAST] == [1000] * LEAST


def test_mutations_are_refused_and_throttled_alike(both: SideBySide) -> None:
    """A throttle time is shorter the later it is told, so their ends are compared. They move if a broker
    stands still while it creates the first topic: then another client tries.
    """
    for number in range(ATTEMPTS):
        theirs, ours = both.run(f"mutation-{number}")
        due_ms = pytest.approx(theirs.due_ms, abs=1000)
        if ours.due_ms == due_ms:
            break

    assert theirs.codes == ours.codes == [0, 0, 0, REFUSED, 0, 0]
    assert [told_ms > 0 for told_ms in ours.throttles_ms] == [told_ms > 0 for told_ms in theirs.throttles_ms]
    assert ours.due_ms == due_ms
