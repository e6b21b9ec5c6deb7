"""Forwarders beside a topic of a cluster: the cluster is a host without plugins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.delivery.spooled_record import RecordFormat
from odradek.plugin import Reject, TelemetryRecord
from odradek.topic import TopicFormat
from support.forwarding import (
    FLEET,
    HELD_S,
    HeldFarSide,
    ThreadedForward,
    create_topic,
    far_sides,
    fill,
    forwarding,
    metrics,
    producer_of,
    until,
)
from support.hosts import ThreadedHost, running_host
from support.kafka_export import read
from support.spooling import FarSide, down, name_of, payload


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[ThreadedHost]:
    with running_host(tmp_path / "cluster", "group.initial.rebalance.delay.ms=0") as host:
        create_topic(host.bootstrap)
        create_topic(host.bootstrap, 1, f"{FLEET}_dead_letter")
        yield host


def test_two_processes_share_the_partitions_and_each_record_arrives_once(cluster: ThreadedHost) -> None:
    one, two = FarSide(), FarSide()
    fill(cluster.bootstrap, range(100))
    with forwarding(cluster.bootstrap, one) as first:
        until(lambda: len(one.taken) == 100, first)
        with forwarding(cluster.bootstrap, two) as second:
            until(lambda: len(first.owned) == len(second.owned) == 2, first, second)
            fill(cluster.bootstrap, range(100, 300))
            until(lambda: len(one.taken) + len(two.taken) >= 300, first, second)
        until(lambda: len(first.owned) == 4, first)
        fill(cluster.bootstrap, range(300, 400))
        until(lambda: len(one.taken) + len(two.taken) >= 400, first)

    assert Counter(one.names + two.names) == Counter(metrics(range(400)))
    assert len(two.taken) == 100


def test_a_record_has_the_position_in_the_topic_as_its_origin(cluster: ThreadedHost) -> None:
    far_side = FarSide()
    fill(cluster.bootstrap, range(8))
    with forwarding(cluster.bootstrap, far_side) as process:
        until(lambda: len(far_side.taken) == 8, process)

    origins = {record.origin for record in far_side.taken}
    assert {(each.partition, each.offset) for each in origins if each} == {
        (partition, offset) for partition in range(4) for offset in range(2)
    }
    assert len({each.topic_id for each in origins if each}) == 1


def test_a_restart_continues_after_what_was_delivered(cluster: ThreadedHost) -> None:
    far_side = FarSide()
    for at in range(0, 200, 50):
        fill(cluster.bootstrap, range(at, at + 50))
        with forwarding(cluster.bootstrap, far_side) as process:
            until(lambda at=at: len(far_side.taken) >= at + 50, process)

    assert Counter(far_side.names) == Counter(metrics(range(200)))


def test_a_forwarder_whose_destination_is_down_does_not_hold_up_the_others(cluster: ThreadedHost) -> None:
    dead, alive = FarSide(down), FarSide()
    fill(cluster.bootstrap, range(2000))
    with ThreadedForward(cluster.bootstrap, far_sides(alive=alive, dead=dead)) as process:
        until(lambda: len(alive.taken) == 2000, process)
        (runner,) = [each for each in process.made.result(0).runners if each.name == "fake.dead"]
        until(lambda: runner.stats().retries > 2, process)

        assert len(runner.queue.waiting) < 2000
        dead.behavior = lambda batch: None
        until(lambda: len(dead.taken) == 2000, process)


def test_a_rebalance_repeats_only_the_batch_in_flight(cluster: ThreadedHost) -> None:
    """The destination holds a batch for longer than the rebalance waits."""
    one, two = HeldFarSide(), FarSide()
    fill(cluster.bootstrap, range(400))
    with forwarding(cluster.bootstrap, one) as first:
        assert one.held.wait(HELD_S)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("odradek.hosting.group_feed.HANDOVER_S", 0.5)
            with forwarding(cluster.bootstrap, two) as second:
                until(lambda: len(second.owned) == 2, first, second)
                until(lambda: len(two.taken) >= 200, first, second)
                one.released.set()
                until(lambda: set(one.names + two.names) == set(metrics(range(400))), first, second)

    counts = Counter(one.names + two.names)
    repeated = {name for name, count in counts.items() if count > 1}
    assert counts.keys() == set(metrics(range(400)))
    assert repeated <= set(one.names[:40])
    assert max(counts.values()) <= 2


def test_a_batch_that_is_delivered_in_time_is_not_repeated_by_a_rebalance(cluster: ThreadedHost) -> None:
    one, two = HeldFarSide(), FarSide()
    fill(cluster.bootstrap, range(400))
    with forwarding(cluster.bootstrap, one) as first:
        assert one.held.wait(HELD_S)
        with forwarding(cluster.bootstrap, two) as second:
            until(lambda: first.feeds[0].handover_until_s is not None, first)
            one.released.set()
            until(lambda: len(one.taken) + len(two.taken) >= 400, first, second)
            until(lambda: len(second.owned) == 2, first, second)

    assert Counter(one.names + two.names) == Counter(metrics(range(400)))


def test_records_that_are_no_telemetry_or_are_refused_become_dead_letters(cluster: ThreadedHost) -> None:
    def refuse(batch: Sequence[TelemetryRecord]) -> None:
        bad = [
            record
            for record in batch
            if record.context.correlation_id < 0 or b"metric.3" in record.payload.data
        ]
        if bad:
            raise Reject("never", bad)

    far_side = FarSide(refuse)
    fill(cluster.bootstrap, range(6))
    with producer_of(cluster.bootstrap) as producer:
        producer.produce(FLEET, b"junk", partition=0)
    with forwarding(cluster.bootstrap, far_side) as process:
        until(lambda: process.stats().rejected == {"malformed": 1, "never": 1}, process)
        until(lambda: len(far_side.taken) == 5, process)
    letters = read(cluster.bootstrap, f"{FLEET}_dead_letter", 2)

    headers = [dict(letter.headers() or ()) for letter in letters]
    assert {each["dead_letter_reason"] for each in headers} == {b"malformed", b"never"}
    assert {each["dead_letter_topic"] for each in headers} == {FLEET.encode()}
    assert b"junk" in {letter.value() for letter in letters}


def test_the_clients_of_an_otlp_record_are_delivered_or_buried_on_their_own(cluster: ThreadedHost) -> None:
    """One record has three clients; the destination takes one of them, refuses one, and one is too large."""
    large = payload(3, "x" * 5_000)

    def refuse(batch: Sequence[TelemetryRecord]) -> None:
        if bad := [record for record in batch if b"push.2" in record.payload.data]:
            raise Reject("never", bad)

    def entry(name: str, data: bytes) -> bytes:
        found = MetricsData.FromString(data)
        found.resource_metrics[0].resource.attributes.add(key="service.name").value.string_value = name
        return found.SerializeToString()

    far_side = FarSide(refuse)
    message = entry("one", payload(1)) + entry("two", payload(2)) + entry("three", large)
    with producer_of(cluster.bootstrap) as producer:
        for value in (message, b"", b"\xff", entry("four", payload(4))):
            producer.produce(FLEET, value, partition=0)
    otlp = RecordFormat(name=TopicFormat.OTLP_PROTO)
    limits = ("telemetry.error.policy=client-safe", "telemetry.max.decompressed.bytes=4000")
    with forwarding(cluster.bootstrap, far_side, *limits, record_format=otlp) as process:
        until(lambda: sum(process.stats().rejected.values()) == 3, process)
        until(lambda: far_side.names == ["push.1", "push.4"], process)
        stats = process.stats()
    letters = read(cluster.bootstrap, f"{FLEET}_dead_letter", 3)

    assert stats.dropped == {"empty": 1}
    (large_reason,) = stats.rejected.keys() - {"malformed", "never"}
    assert large_reason.endswith("at most 4000 are allowed")
    by_reason = {dict(letter.headers() or ())["dead_letter_reason"]: letter.value() for letter in letters}
    assert by_reason[b"malformed"] == b"\xff"
    assert (name_of(by_reason[b"never"]), b"push.3" in by_reason[b"never"]) == ("push.2", False)
