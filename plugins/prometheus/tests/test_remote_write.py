"""Remote write against a receiver that stores what it gets: totals, times, markers, outages, deaths."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.plugin import Origin, PluginConfig, Reject, Retry, TelemetryRecord, context_labels
from odradek_prometheus.exposition import Exposition, ExpositionSettings
from odradek_prometheus.remote_write import remote_write_forwarder
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from odradek_prometheus.remote_write.remote_write_settings import read_remote_write
from support.delta_clients import A, B, Scene, counter, d, gauge, ms, nanos, point
from support.otlp_collector import Collector, collecting
from support.remote_write_receiver import STALE, StoringReceiver, answering, written
from support.telemetry_records import push_request


class Pair:
    """A forwarder's settings and its receiver."""

    def __init__(self, collector: Collector, folder: Path, **table: object) -> None:
        self.collector = collector
        self.receiver = StoringReceiver()
        collector.mood = self.receiver
        self.scene = Scene()
        self.table = {
            "remote_write.url": f"{collector.url}/api/v1/write",
            "remote_write.totals.file": str(folder / "totals.db"),
            **{f"remote_write.{name.replace('_', '.')}": value for name, value in table.items()},
        }

    def forwarder(self) -> RemoteWriteForwarder:
        config = PluginConfig("plugins.prometheus", self.table)
        settings = read_remote_write(config)
        assert settings is not None
        return RemoteWriteForwarder(settings, Exposition(ExpositionSettings(linger_ms=0)), "test/1")

    def record(self, *metrics: Metric, **facts: object) -> TelemetryRecord:
        """The next record of the log."""
        found = self.scene.record(*metrics, **facts)  # type: ignore[arg-type]
        found.position = Origin("topic-1", 0, self.scene.next_offset)
        self.scene.next_offset += 1
        return found

    def life(self, *batches: Sequence[TelemetryRecord]) -> RemoteWriteForwarder:
        """Deliver batches in one life of a forwarder."""

        async def deliver(forwarder: RemoteWriteForwarder) -> None:
            for batch in batches:
                await forwarder.deliver(batch)

        return self.live(deliver)

    def live(self, work: Callable[[RemoteWriteForwarder], Awaitable[None]]) -> RemoteWriteForwarder:
        forwarder = self.forwarder()

        async def body() -> None:
            await forwarder.start()
            try:
                await work(forwarder)
            finally:
                await forwarder.close()

        asyncio.run(body())
        return forwarder


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with collecting() as collector:
        yield Pair(collector, tmp_path)


def test_totals_with_their_start_after_a_zero(pair: Pair) -> None:
    pair.life([pair.record(d(5, 0, 60), gauge(1.5), at=61)], [pair.record(d(3, 60, 120), gauge(2.5), at=121)])

    totals = pair.receiver.series("c_total", client_id="orders", job="kafka-clients")
    assert [(row.time_ms, row.value, row.start_ms) for row in totals] == [
        (ms(0), 0.0, 0),
        (ms(61), 5.0, ms(0)),
        (ms(121), 8.0, ms(0)),
    ]
    assert [(row.time_ms, row.value, row.start_ms) for row in pair.receiver.series("g")] == [
        (ms(61), 1.5, 0),
        (ms(121), 2.5, 0),
    ]
    assert pair.receiver.about["c_total"][0] == 1
    assert pair.receiver.values("kafka_client_info") == [1.0, 1.0]


def test_each_push_of_a_batch_has_its_samples(pair: Pair) -> None:
    pair.life([pair.record(d(1, 60 * n, 60 * n + 60), at=60 * n + 61) for n in range(4)])

    assert pair.receiver.values("c_total") == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_times_increase_whatever_the_hosts_clock_does(pair: Pair) -> None:
    pair.life(
        [pair.record(d(1, 0, 60), at=100)],
        [pair.record(d(1, 60, 120), at=40)],
        [pair.record(d(1, 120, 180), at=40)],
    )

    times = [row.time_ms for row in pair.receiver.series("c_total")]
    assert times[1:] == [ms(100), ms(100) + 1, ms(100) + 2]


def test_times_increase_if_the_hosts_clock_is_wrong_after_its_death(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.time", lambda: ms(130) / 1000)
    pair.life([pair.record(d(1, 0, 60), at=100)])
    forwarder = pair.life([pair.record(d(1, 60, 120), at=40)])

    assert [row.time_ms for row in pair.receiver.series("c_total")][1:] == [ms(100), ms(100) + 1]
    assert forwarder.receiver.counts.rejected == {}


def test_a_client_whose_clock_is_wrong_has_times_of_the_host(pair: Pair) -> None:
    day = 86_400
    pair.life(
        [pair.record(d(5, 2 * day, 2 * day + 60), at=60)],
        [pair.record(d(1, 2 * day + 60, 2 * day + 120), at=121)],
    )

    rows = pair.receiver.series("c_total")
    assert [(row.time_ms, row.value) for row in rows] == [(ms(0), 0.0), (ms(60), 5.0), (ms(121), 6.0)]
    assert [row.start_ms for row in rows[1:]] == [ms(0), ms(0)]


def test_a_zero_is_not_older_than_the_receiver_takes(pair: Pair) -> None:
    pair.life([pair.record(d(5, 0, 7_200), at=7_200)])

    assert [row.time_ms for row in pair.receiver.series("c_total")] == [ms(7_200 - 3_000), ms(7_200)]


def test_a_total_that_is_zero_needs_no_other(pair: Pair) -> None:
    pair.life([pair.record(d(0, 0, 60))])

    assert pair.receiver.values("c_total") == [0.0]


def test_an_old_stream_gets_no_zero_in_a_new_life(pair: Pair) -> None:
    pair.life([pair.record(d(5, 0, 60), at=60)])
    pair.life([pair.record(d(1, 3_600, 3_660), at=3_660)])

    assert pair.receiver.values("c_total") == [0.0, 5.0, 6.0]


def test_a_goodbye_ends_all_series_after_their_last_values(pair: Pair) -> None:
    pair.life(
        [pair.record(d(5, 0, 60), gauge(1.0), at=60)], [pair.record(d(2, 60, 75), at=75, terminating=True)]
    )

    rows = pair.receiver.series("c_total")
    assert [row.value for row in rows] == [0.0, 5.0, 7.0, None]
    assert rows[-1].time_ms == ms(75) + 1
    for name in pair.receiver.names():
        assert pair.receiver.values(name)[-1] is None, name


def test_a_gauge_without_a_value_ends(pair: Pair) -> None:
    pair.life(
        [pair.record(gauge(1.0), at=60)],
        [pair.record(gauge(float("nan")), at=120)],
        [pair.record(gauge(4.0), at=180)],
    )

    assert pair.receiver.values("g") == [1.0, None, 4.0]


def test_a_label_that_changes_ends_the_old_series(pair: Pair) -> None:
    pair.life(
        [pair.record(d(5, 0, 60), at=60, labels={"client_id": "a"})],
        [pair.record(d(1, 60, 120), at=120, labels={"client_id": "a", "group_id": "g"})],
    )

    (before,) = [
        rows
        for labels, rows in pair.receiver.samples.items()
        if ("__name__", "c_total") in labels and "group_id" not in dict(labels)
    ]
    after = pair.receiver.series("c_total", group_id="g")
    assert [row.value for row in before] == [0.0, 5.0, None]
    assert [row.value for row in after] == [6.0]
    assert before[-1].time_ms >= after[0].time_ms


def test_a_silent_client_ends_once(pair: Pair) -> None:
    async def work(forwarder: RemoteWriteForwarder) -> None:
        await forwarder.deliver([pair.record(d(5, 0, 60), at=60)])
        for second in (200, 214, 217, 300):
            forwarder.look(ms(second))
            await forwarder.send()

    pair.live(work)

    rows = pair.receiver.series("c_total")
    assert [row.value for row in rows if row.value is None] == [None]
    assert ms(215) <= rows[-1].time_ms <= ms(218)
    assert pair.receiver.values("kafka_client_info")[-1] is None


def test_the_series_of_a_client_that_another_process_has_now_do_not_end(pair: Pair) -> None:
    async def work(forwarder: RemoteWriteForwarder) -> None:
        await forwarder.deliver([pair.record(d(5, 0, 60), at=60)])
        forwarder.keep([])
        for second in (70, 400):
            forwarder.look(ms(second))
            await forwarder.send()

    pair.live(work)

    assert [pair.receiver.values(name)[-1] for name in ("c_total", "kafka_client_info")] == [5.0, 1.0]


def test_values_are_sent_again_while_a_client_is_silent(pair: Pair) -> None:
    async def work(forwarder: RemoteWriteForwarder) -> None:
        record = pair.record(d(5, 0, 60), at=60)
        record.push_interval_ms = 300_000
        await forwarder.deliver([record])
        for second in range(65, 190, 5):
            forwarder.look(ms(second))
            await forwarder.send()

    pair.live(work)

    rows = pair.receiver.series("c_total")
    assert [(row.time_ms, row.value) for row in rows[1:]] == [(ms(60), 5.0), (ms(120), 5.0), (ms(180), 5.0)]


def test_a_client_that_pushes_in_time_is_not_repeated(pair: Pair) -> None:
    async def work(forwarder: RemoteWriteForwarder) -> None:
        await forwarder.deliver([pair.record(d(5, 0, 60), at=60)])
        for second in range(65, 175, 5):
            forwarder.look(ms(second))
        assert not forwarder.outbox

    pair.live(work)


def test_an_outage_loses_nothing_and_keeps_the_order(pair: Pair) -> None:
    batches = [
        [pair.record(d(1, 60 * n, 60 * n + 60), at=60 * n + 61, instance=each) for each in (A, B)]
        for n in range(10)
    ]

    async def work(forwarder: RemoteWriteForwarder) -> None:
        for index, batch in enumerate(batches):
            if index == 4:
                pair.collector.mood = answering(503)
                for _ in range(3):
                    with pytest.raises(Retry, match="503"):
                        await forwarder.deliver(batch)
                    forwarder.look(ms(10_000))
                pair.collector.mood = pair.receiver
            await forwarder.deliver(batch)

    forwarder = pair.live(work)

    for each in (A, B):
        (rows,) = [
            rows
            for labels, rows in pair.receiver.samples.items()
            if {("__name__", "c_total"), ("client_instance_id", instance_text(each))} <= labels
        ]
        assert [row.value for row in rows] == [float(n) for n in range(11)]
        assert [row.time_ms for row in rows[1:]] == [ms(60 * n + 61) for n in range(10)]
    assert forwarder.receiver.counts.rejected == {}


def instance_text(instance: bytes) -> str:
    """A client instance id as a label."""
    return context_labels(instance, push_request())["client_instance_id"]


def test_a_death_before_the_samples_are_sent(pair: Pair) -> None:
    batch = [pair.record(d(5, 0, 60), at=60), pair.record(d(2, 60, 120), at=120)]
    pair.collector.mood = answering(503)

    async def dies(forwarder: RemoteWriteForwarder) -> None:
        with pytest.raises(Retry):
            await forwarder.deliver(batch)

    pair.live(dies)
    pair.collector.mood = pair.receiver
    pair.life(batch)

    assert pair.receiver.values("c_total")[-1] == 7.0


def test_a_death_after_the_samples_were_stored(pair: Pair) -> None:
    batch = [pair.record(d(5, 0, 60), at=60)]

    pair.life(batch)
    forwarder = pair.life(batch, [pair.record(d(1, 60, 120), at=120)])

    assert pair.receiver.values("c_total")[-1] == 6.0
    assert 11.0 not in pair.receiver.values("c_total")
    assert forwarder.receiver.counts.rejected == {}


def test_records_that_are_not_otlp_are_refused_and_cost_no_other(pair: Pair) -> None:
    bad = pair.record(data=b"\xff\xff", at=60)
    good = pair.record(d(5, 0, 60), at=60, instance=B)

    async def work(forwarder: RemoteWriteForwarder) -> None:
        pair.collector.mood = answering(503)
        with pytest.raises(Retry):
            await forwarder.deliver([bad, good])
        pair.collector.mood = pair.receiver
        with pytest.raises(Reject) as caught:
            await forwarder.deliver([bad, good])
        assert (caught.value.records, caught.value.delivered) == ([bad], [good])
        await forwarder.deliver([good])

    pair.live(work)

    assert pair.receiver.values("c_total")[:2] == [0.0, 5.0]


def test_pushes_of_one_record_have_their_samples_if_the_totals_cannot_be_stored_between(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    early = pair.record(d(5, 0, 60), at=60)
    late = pair.record(d(2, 60, 120), at=120)
    beside = pair.record(d(9, 0, 60), at=120, instance=B)
    beside.position = late.position

    async def work(forwarder: RemoteWriteForwarder) -> None:
        deliver, calls = forwarder.totals.deliver, 0

        async def deliver_but_not_the_second(batch: Sequence[TelemetryRecord]) -> None:
            nonlocal calls
            calls += 1
            if calls == 2:
                raise Retry("the disk is full")
            await deliver(batch)

        monkeypatch.setattr(forwarder.totals, "deliver", deliver_but_not_the_second)
        with pytest.raises(Retry, match="full"):
            await forwarder.deliver([early, late, beside])
        await forwarder.deliver([early, late, beside])

    pair.live(work)

    assert pair.receiver.values("c_total", client_instance_id=instance_text(A)) == [0.0, 5.0, 7.0]
    assert pair.receiver.values("c_total", client_instance_id=instance_text(B)) == [0.0, 9.0]


def test_a_silent_client_ends_although_an_earlier_batch_was_given_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_write_forwarder, "LOOK_S", 0.01)
    monkeypatch.setattr(remote_write_forwarder, "QUIET_S", 0.0)
    monkeypatch.setattr("time.time", lambda: ms(400) / 1000)

    async def work(forwarder: RemoteWriteForwarder) -> None:
        pair.collector.mood = answering(503)
        with pytest.raises(Retry):
            await forwarder.deliver([pair.record(d(5, 0, 60), at=60)])
        pair.collector.mood = pair.receiver
        await forwarder.deliver([pair.record(d(2, 60, 120), at=120)])
        async with asyncio.timeout(30):
            while pair.receiver.values("c_total")[-1] is not None:
                await asyncio.sleep(0.01)

    pair.live(work)

    assert pair.receiver.values("c_total") == [0.0, 5.0, 7.0, None]


def test_parts_of_a_batch_that_come_again_are_not_added_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = pair.scene.record(d(5, 0, 60), at=60), pair.scene.record(d(2, 60, 120), at=120)
    beside = pair.scene.record(d(9, 0, 60), at=120, instance=B)

    async def fail(_samples: object) -> None:
        raise ValueError("a mistake")

    async def work(forwarder: RemoteWriteForwarder) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(forwarder.receiver, "write", fail)
            with pytest.raises(ValueError, match="mistake"):
                await forwarder.deliver([early, late, beside])
        await forwarder.deliver([early, late])
        await forwarder.deliver([beside])

    pair.live(work)

    assert pair.receiver.values("c_total", client_instance_id=instance_text(A)) == [0.0, 5.0, 7.0]
    assert pair.receiver.values("c_total", client_instance_id=instance_text(B)) == [0.0, 9.0]


def test_a_record_that_is_read_again_is_still_refused(pair: Pair) -> None:
    bad = pair.record(data=b"\xff\xff", at=60)
    again = pair.scene.record(data=b"\xff\xff", at=60)
    again.position = bad.position

    async def work(forwarder: RemoteWriteForwarder) -> None:
        pair.collector.mood = answering(503)
        with pytest.raises(Retry):
            await forwarder.deliver([bad, pair.record(d(5, 0, 60), at=60, instance=B)])
        pair.collector.mood = pair.receiver
        with pytest.raises(Reject) as caught:
            await forwarder.deliver([again])
        assert caught.value.records == [again]

    pair.live(work)


def test_samples_that_are_never_stored_are_delivered_and_counted(pair: Pair) -> None:
    pair.collector.mood = answering(400, "out of order sample", **written(0))

    forwarder = pair.life([pair.record(d(5, 0, 60), at=60)])

    assert forwarder.refused_points == {"out_of_order": 6}


def test_a_client_is_in_one_request_at_a_time(tmp_path: Path) -> None:
    with collecting() as collector:
        pair = Pair(collector, tmp_path, samples_per_request=7, requests_in_flight=3)
        pair.life([pair.record(d(5, 0, 60), at=60, instance=bytes([each]) * 16) for each in range(20)])

    assert max(series for _, series in pair.receiver.requests) == 7
    assert sum(series for _, series in pair.receiver.requests) == 20 * 5


def test_1_0(tmp_path: Path) -> None:
    with collecting() as collector:
        pair = Pair(collector, tmp_path, protocol="1.0")
        pair.life([pair.record(d(5, 0, 60), at=61)], [pair.record(d(3, 60, 120), at=121)])

    rows = pair.receiver.series("c_total")
    assert [(row.time_ms, row.value) for row in rows] == [(ms(0), 0.0), (ms(61), 5.0), (ms(121), 8.0)]


def test_labels_of_all_series(tmp_path: Path) -> None:
    with collecting() as collector:
        pair = Pair(collector, tmp_path, **{"labels.instance": "host-1", "labels.job": "clients"})
        metric = counter(point(5, 0, 60, {"instance": "own"}))
        pair.life([pair.record(d(5, 0, 60)), pair.record(metric, instance=B)])

    assert pair.receiver.values("c_total", job="clients", instance="host-1") == [0.0, 5.0]
    assert pair.receiver.values("c_total", job="clients", instance="own") == [0.0, 5.0]


def test_a_histogram_is_a_series_for_each_bucket(pair: Pair) -> None:
    def pushed(second: int, *counts: int) -> TelemetryRecord:
        metric = Metric(name="h")
        metric.histogram.aggregation_temporality = 1  # type: ignore[assignment]
        metric.histogram.data_points.add(
            start_time_unix_nano=nanos(second - 60),
            time_unix_nano=nanos(second),
            explicit_bounds=[0.5, 1],
            bucket_counts=counts,
            count=sum(counts),
            sum=4.0,
        )
        return pair.record(metric, at=second)

    pair.life([pushed(60, 1, 0, 2)], [pushed(120, 1, 1, 1)], [pair.record(at=130, terminating=True)])

    assert pair.receiver.values("h_bucket", le="0.5") == [0.0, 1.0, 2.0, None]
    assert pair.receiver.values("h_bucket", le="1.0") == [0.0, 1.0, 3.0, None]
    assert pair.receiver.values("h_bucket", le="+Inf") == [0.0, 3.0, 6.0, None]
    assert pair.receiver.values("h_count") == [0.0, 3.0, 6.0, None]
    assert pair.receiver.values("h_sum") == [0.0, 4.0, 8.0, None]
    assert pair.receiver.about["h_bucket"][0] == 3


def test_an_exponential_histogram_is_a_native_one(pair: Pair) -> None:
    metric = Metric(name="e")
    metric.exponential_histogram.aggregation_temporality = 1  # type: ignore[assignment]
    added = metric.exponential_histogram.data_points.add(
        start_time_unix_nano=nanos(0), time_unix_nano=nanos(60), scale=1, count=5, zero_count=1, sum=9.0
    )
    added.positive.offset = -1
    added.positive.bucket_counts[:] = [1, 0, 3]

    pair.life([pair.record(metric, at=60)], [pair.record(at=70, terminating=True)])

    found, marker = pair.receiver.histograms
    assert (found.count_int, found.sum, found.schema, found.zero_count_int) == (5, 9.0, 1, 1)
    assert [(span.offset, span.length) for span in found.positive_spans] == [(0, 1), (1, 1)]
    assert list(found.positive_deltas) == [1, 2]
    assert (found.timestamp, found.start_timestamp) == (ms(60), ms(0))
    assert (marker.timestamp, struct.pack("<d", marker.sum)) == (ms(70) + 1, struct.pack("<Q", STALE))
