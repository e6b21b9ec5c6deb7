"""The log as spool: accepted pushes are in the topic, and reach forwarders despite failures."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import select
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from odradek.cli.main import run
from odradek.delivery.log_cursor import Chunk
from odradek.plugin import Reject, TelemetryRecord
from odradek.topic import decode_record
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.hosts import ThreadedHost
from support.spooling import (
    PATIENCE_S,
    TOPIC,
    Behavior,
    FarSide,
    admin_of,
    committed,
    down,
    hosting,
    name_of,
    names,
    payload,
    push_all,
    settled_stats,
    until,
)
from support.waiting import wait_until
from support.wire_client import WireClient

DEAD_LETTERS = "__client_telemetry_dead_letter"


def records_of(host: ThreadedHost, topic: str, count: int) -> list[tuple[TelemetryRecord, dict[str, bytes]]]:
    """The first records of partition 0, as any Kafka client reads them."""
    consumer = Consumer(
        {"bootstrap.servers": host.bootstrap, "group.id": "reader", "enable.metrics.push": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[TelemetryRecord, dict[str, bytes]]] = []
    end_s = time.monotonic() + PATIENCE_S
    while len(found) < count and time.monotonic() < end_s:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            headers = message.headers() or []
            record = decode_record(message.key(), message.value(), headers)
            found.append((record, dict(headers)))
    consumer.close()
    return found


def test_an_accepted_push_is_a_record_that_any_client_reads(tmp_path: Path) -> None:
    with hosting(tmp_path, far=FarSide()) as host:
        codes = push_all(host, range(5))
        found = records_of(host, TOPIC, 5)

    assert codes == [0] * 5
    assert [name_of(record.payload.data) for record, _ in found] == names(range(5))
    record, headers = found[0]
    assert record.context.connection.client_software_name == "raw-client"
    assert record.push_interval_ms == 200
    assert headers["principal"] == b"User:ANONYMOUS"


def test_forwarders_get_every_push_in_order_and_commit_delivered_offsets(tmp_path: Path) -> None:
    far, other = FarSide(), FarSide()

    with hosting(tmp_path, far=far, other=other) as host:
        push_all(host, range(100))
        until(host, lambda: len(far.taken) == len(other.taken) == 100)
        until(host, lambda: committed(host, "odradek.forwarder.fake.far") == 100)

    assert far.names == other.names == names(range(100))
    assert far.calls < 100


def test_a_push_is_answered_before_any_forwarder_reads_it(tmp_path: Path) -> None:
    reads: list[tuple[int, bool]] = []

    with hosting(tmp_path, a=FarSide(), b=FarSide()) as host, WireClient(host.address) as client:
        spool = host.host.spool
        assert spool is not None
        original, answered = spool.read, select.poll()
        answered.register(client.socket, select.POLLIN)

        def read(positions: Mapping[int, int]) -> list[Chunk]:
            chunks = original(positions)
            reads.append((len(chunks), bool(answered.poll(0))))
            return chunks

        host.call(lambda: setattr(spool, "read", read))
        push_all(host, range(1))
        wait_until(lambda: [found for found, _ in reads[-4:]] == [1, 1, 0, 0], lambda: reads)  # both wait
        client.introduce()
        told = client.subscriptions()
        reads.clear()
        push = PushTelemetryRequest(
            client_instance_id=told.client_instance_id,
            subscription_id=told.subscription_id,
            metrics=payload(1),
        )
        client.send_bytes(client.frame(push, 0))
        wait_until(lambda: [found for found, _ in reads[:2]] == [1, 1], lambda: reads)
        code = client.answer(push, 0).error_code

    assert code == 0
    assert reads[:2] == [(1, True), (1, True)]


def test_offsets_are_stored_before_the_next_batch_is_delivered(tmp_path: Path) -> None:
    far = FarSide(behavior=down)
    taken_at_commit: list[int] = []

    with hosting(tmp_path, "plugins.fake.batch.max.records=5", far=far) as host:
        push_all(host, range(50))
        spool = host.host.spool
        assert spool is not None
        commit = spool.commit

        def slowly(group_id: str, positions: Mapping[int, int]) -> None:
            time.sleep(0.01)
            taken_at_commit.append(len(far.taken))
            commit(group_id, positions)

        until(host, lambda: far.calls > 0)
        spool.commit = slowly  # type: ignore[method-assign]
        far.behavior = lambda batch: None
        until(host, lambda: committed(host, "odradek.forwarder.fake.far") == 50)

    assert taken_at_commit[-1] == 50
    assert all(after - before <= 5 for before, after in itertools.pairwise([0, *taken_at_commit]))


def test_pushes_wait_in_the_log_while_the_destination_is_down(tmp_path: Path) -> None:
    far = FarSide(behavior=down)

    with hosting(tmp_path, far=far) as host:
        codes = push_all(host, range(50))
        until(host, lambda: far.calls > 3)
        far.behavior = lambda batch: None
        until(host, lambda: len(far.taken) == 50)

    assert codes == [0] * 50
    assert far.names == names(range(50))


def test_after_a_restart_delivery_continues_where_it_ended(tmp_path: Path) -> None:
    first, second = FarSide(), FarSide()
    with hosting(tmp_path, far=first) as host:
        push_all(host, range(10))
        until(host, lambda: len(first.taken) == 10)
        first.behavior = down
        push_all(host, range(10, 30))

    with hosting(tmp_path, far=second) as host:
        until(host, lambda: len(second.taken) == 20)

    assert second.names == names(range(10, 30))


def test_a_new_forwarder_starts_at_the_end(tmp_path: Path) -> None:
    late = FarSide()
    with hosting(tmp_path) as host:
        push_all(host, range(5))

    with hosting(tmp_path, late=late) as host:
        push_all(host, range(5, 8))
        until(host, lambda: len(late.taken) == 3)

    assert late.names == names(range(5, 8))


def test_a_poison_record_is_found_by_halving_and_becomes_a_dead_letter(tmp_path: Path) -> None:
    def refuse(batch: Sequence[TelemetryRecord]) -> object:
        if any(name_of(record.payload.data) == "push.17" for record in batch):
            raise Reject("HTTP 400")
        return None

    far = FarSide(behavior=refuse)

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(40))
        until(host, lambda: len(far.taken) == 39)
        until(host, lambda: host.host.forwarders[0].stats().rejected == {"HTTP 400": 1})
        ((letter, headers),) = records_of(host, DEAD_LETTERS, 1)
        until(host, lambda: committed(host, "odradek.forwarder.fake.far") == 40)

    assert far.names == [name for name in names(range(40)) if name != "push.17"]
    assert name_of(letter.payload.data) == "push.17"
    assert headers["dead_letter_reason"] == b"HTTP 400"
    assert headers["dead_letter_forwarder"] == b"fake.far"
    assert headers["dead_letter_offset"] == b"17"


def test_dead_letters_that_cannot_be_stored_are_not_lost(tmp_path: Path) -> None:
    def refuse(batch: Sequence[TelemetryRecord]) -> object:
        raise Reject("HTTP 400", batch)

    with hosting(tmp_path, far=FarSide(behavior=refuse)) as host:
        spool = host.host.spool
        assert spool is not None
        bury, tries = spool.bury, []

        def full(batch: bytes) -> None:
            tries.append(batch)
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "No space left on device")

        spool.bury = full  # type: ignore[method-assign]
        push_all(host, range(3))
        until(host, lambda: bool(tries))
        before = host.host.forwarders[0].stats()
        spool.bury = bury  # type: ignore[method-assign]
        until(host, lambda: host.host.forwarders[0].stats().rejected == {"HTTP 400": 3})
        until(host, lambda: committed(host, "odradek.forwarder.fake.far") == 3)

    assert before.rejected == {}
    assert before.queued + before.in_flight == 3


def block(batch: Sequence[TelemetryRecord]) -> object:
    time.sleep(0.3)
    raise ValueError("bug")


async def hang(batch: Sequence[TelemetryRecord]) -> None:
    await asyncio.sleep(3600)


def bug(batch: Sequence[TelemetryRecord]) -> object:
    raise ValueError("bug")


@pytest.mark.parametrize("behavior", [bug, hang, block, down])
def test_a_bad_forwarder_affects_neither_other_forwarders_nor_clients(
    tmp_path: Path, behavior: Behavior
) -> None:
    good, bad = FarSide(), FarSide(behavior=behavior)
    overrides = ("plugins.fake.deliver.timeout.ms=50", "shutdown.timeout.ms=500")

    with hosting(tmp_path, *overrides, good=good, bad=bad) as host:
        codes = push_all(host, range(60))
        until(host, lambda: len(good.taken) == 60)
        until(host, lambda: bad.calls > 0)

    assert codes == [0] * 60
    assert bad.taken == []


def test_a_record_without_the_hosts_headers_becomes_a_dead_letter(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        spool = host.host.spool
        assert spool is not None
        stranger = build_batch([Record(b"who?", b"hello", int(time.time() * 1000))])
        host.call(lambda: spool.write(0, stranger))
        push_all(host, range(1))
        until(host, lambda: len(far.taken) == 1)
        stats = settled_stats(host)

    assert far.names == ["push.0"]
    assert stats.rejected == {"malformed": 1}


def test_a_full_disk_throttles_clients_until_there_is_room(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        spool = host.host.spool
        assert spool is not None
        write = spool.writer.write

        def full(partition: int, batch: bytes) -> None:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "No space left on device")

        spool.writer.write = full
        refused = push_all(host, range(3))
        spool.writer.write = write
        accepted = push_all(host, range(3, 6))
        until(host, lambda: len(far.taken) == 3)
        counted = dict(spool.writer.refused)

    assert refused == [ErrorCode.THROTTLING_QUOTA_EXCEEDED] * 3
    assert accepted == [0] * 3
    assert counted == {"KAFKA_STORAGE_ERROR": 3}
    assert far.names == names(range(3, 6))


def test_a_full_topic_throttles_clients_until_retention_makes_room(tmp_path: Path) -> None:
    far = FarSide(behavior=down)

    with hosting(tmp_path, "telemetry.log.max.bytes=3000", far=far) as host:
        with WireClient(host.address) as client:
            client.introduce()
            codes = [client.push(payload(number)) for number in range(30)]
        spool = host.host.spool
        assert spool is not None
        kept = codes.count(0)
        partition = spool.topic.partitions[0]

        def expire() -> None:
            partition.roll(host.host.clock.now_ms())
            partition.delete_records(-1)

        host.call(expire)
        far.behavior = lambda batch: None
        later = push_all(host, range(30, 32))
        until(host, lambda: far.names[-2:] == names(range(30, 32)))
        until(
            host, lambda: sum(host.host.forwarders[0].stats().dropped.values()) + len(far.taken) == kept + 2
        )

    assert 0 < kept < 30
    assert set(codes) == {0, ErrorCode.THROTTLING_QUOTA_EXCEEDED}
    assert later == [0, 0]


def test_records_that_expire_before_delivery_are_counted(tmp_path: Path) -> None:
    far = FarSide(behavior=down)

    with hosting(tmp_path, "telemetry.linger.ms=0", far=far) as host:
        push_all(host, range(3))
        until(host, lambda: far.calls > 0)
        push_all(host, range(3, 300))
        spool = host.host.spool
        assert spool is not None
        partition = spool.topic.partitions[0]
        host.call(lambda: partition.delete_records(290))
        far.behavior = lambda batch: None
        until(host, lambda: far.names[-1:] == ["push.299"])
        stats = settled_stats(host)

    assert stats.delivered == len(far.taken)
    assert stats.delivered + stats.dropped.get("expired", 0) == 300


def test_empty_and_terminating_pushes_reach_forwarders(tmp_path: Path) -> None:
    far = FarSide(everything=True)

    with hosting(tmp_path, far=far) as host, WireClient(host.address) as client:
        client.introduce()
        told = client.subscriptions()
        for metrics, terminating in ((b"", False), (payload(1), True)):
            client.send(
                PushTelemetryRequest(
                    client_instance_id=told.client_instance_id,
                    subscription_id=told.subscription_id,
                    terminating=terminating,
                    metrics=metrics,
                )
            )
        until(host, lambda: len(far.taken) == 2)
        accounts = host.host.telemetry.accounts

    assert [(record.payload.data != b"", record.payload.terminating) for record in far.taken] == [
        (False, False),
        (True, True),
    ]
    assert (accounts.empty, accounts.appended) == (1, 1)


@pytest.mark.parametrize("durability", ["memory", "fsync"])
def test_every_durability_delivers(tmp_path: Path, durability: str) -> None:
    far = FarSide()

    with hosting(tmp_path, f"telemetry.durability={durability}", far=far) as host:
        codes = push_all(host, range(20))
        until(host, lambda: len(far.taken) == 20)
        partitions = host.host.spool.topic.partitions if host.host.spool else []
        flushed = all(each.recovery_point == each.log_end_offset for each in partitions)

    assert codes == [0] * 20
    assert far.names == names(range(20))
    assert flushed
    assert bool(partitions) == (durability == "fsync")


def test_several_partitions_keep_the_order_of_each_client(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, "telemetry.topic.partitions=4", far=far) as host:
        threads = [threading.Thread(target=push_as_one, args=(host, client)) for client in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        until(host, lambda: len(far.taken) == 24)
        ends = host.host.spool.ends() if host.host.spool else {}

    assert min(ends.values()) > 0, "a partition without a client"
    for client in range(6):
        ours = [name for name in far.names if int(name.removeprefix("push.")) // 100 == client]
        assert ours == [f"push.{client * 100 + number}" for number in range(4)]


def push_as_one(host: ThreadedHost, client: int) -> None:
    """Four pushes of one instance, at its interval."""
    with WireClient(host.address) as connection:
        connection.introduce()
        told = connection.subscriptions(bytes([client + 2]) * 16)
        for number in range(4):
            answer = connection.send(
                PushTelemetryRequest(
                    client_instance_id=told.client_instance_id,
                    subscription_id=told.subscription_id,
                    metrics=payload(client * 100 + number),
                )
            )
            assert answer.error_code == 0
            time.sleep(0.21)


def has_said_goodbye(host: ThreadedHost, far: FarSide) -> bool:
    """Run a producer for two pushes. It says no goodbye if it is closed while a push waits for its answer."""
    before = len(far.taken)
    producer = Producer({"bootstrap.servers": host.bootstrap, "client.id": "orders"})
    producer.produce("sales", b"one")
    producer.flush(10)
    until(host, lambda: len(far.taken) >= before + 2)
    producer.close()
    with contextlib.suppress(AssertionError):
        return wait_until(lambda: far.taken[-1].payload.terminating, "no goodbye", 3)
    return False


def test_every_push_of_a_real_client_is_in_the_log(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        clients = 1
        while not has_said_goodbye(host, far):
            clients += 1
        found = records_of(host, TOPIC, len(far.taken))

    assert {record.context.client_id for record in far.taken} == {"orders"}
    assert far.taken[0].context.connection.client_software_name.startswith("confluent-kafka-python")
    assert len({record.payload.client_instance_id for record in far.taken}) == clients
    assert [record.payload.data for record, _ in found] == [record.payload.data for record in far.taken]


def test_a_deleted_telemetry_topic_is_created_again(tmp_path: Path) -> None:
    far = FarSide()

    with hosting(tmp_path, far=far) as host:
        push_all(host, range(3))
        until(host, lambda: len(far.taken) == 3)
        with admin_of(host) as admin:
            admin.delete_topics([TOPIC])
        codes = push_all(host, range(3, 6))
        wait_until(lambda: len(far.taken) == 6, lambda: far.taken)
        stats = settled_stats(host)

    assert codes == [0] * 3
    assert far.names == names(range(6))
    assert stats.balanced


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("telemetry.durability=maybe", "telemetry.durability: expected one of memory, log, fsync, kafka"),
        ("telemetry.topic.name=no topic", "telemetry.topic.name: expected the name of a topic"),
        ("telemetry.topic.partitions=0", "telemetry.topic.partitions: expected a whole number"),
        ("telemetry.linger.ms=-1", "telemetry.linger.ms: expected a whole number"),
        ("telemetry.retention.ms=soon", "telemetry.retention.ms: expected a whole number"),
        ("plugins.otlp.batch.max.records=0", "plugins.otlp.batch.max.records: expected a whole number"),
    ],
)
def test_configuration_errors_are_reported_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], override: str, problem: str
) -> None:
    status = run(["serve", "--set", f"data.dir={tmp_path}", "--plugin", "otlp", "--set", override])

    assert status == 2
    assert problem in capsys.readouterr().err
