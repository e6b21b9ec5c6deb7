"""The decoder's fast paths compared with protobuf: they accept, refuse and read the same."""

from __future__ import annotations

import json
import math
import os
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_payloads import (
    RECEIVED_MS,
    TIME_NS,
    metrics_data,
    mutated,
    random_metrics,
    topic_record,
    with_other_numbers,
)

from odradek_tables.decoder import decode
from odradek_tables.decoder.by_protobuf import Undecodable, decode_by_protobuf
from odradek_tables.decoder.decode import Decoded, Decoder, DecoderSettings
from odradek_tables.decoder.payload_points import PayloadPoints
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.schemas import DEAD_LETTER, HISTOGRAMS, POINTS, PUSHES, Table


class ByProtobuf(Decoder):
    """The decoder without its fast paths."""

    def points_of(self, payload: bytes) -> PayloadPoints:
        return decode_by_protobuf(payload, self.series, self.resources)


def rows(decoded: Decoded) -> dict[str, list[dict[str, Any]]]:
    """All tables as plain rows; NaN as text, so that it equals itself; without the path taken."""
    tables = {name: batch.to_pylist() for name, batch in decoded.batches()}
    for row in tables["pushes"]:
        del row["shape_id"]
    for table in tables.values():
        for row in table:
            for name, value in row.items():
                if isinstance(value, float):
                    row[name] = "nan" if math.isnan(value) else (value, math.copysign(1, value))
    return tables


@settings(max_examples=300, deadline=None)
@given(random_metrics(), st.integers(0, 2**32))
def test_every_path_reads_the_same(data: MetricsData, seed: int) -> None:
    source = random.Random(seed)
    payloads = [data.SerializeToString(), *(with_other_numbers(data, source) for _ in range(2))]
    records = [topic_record(payload, offset) for offset, payload in enumerate(payloads)]

    decoded = rows(Decoder().decode(records))

    assert decoded == rows(ByProtobuf().decode(records))


def test_numbers_of_a_known_layout_are_read_without_a_parse() -> None:
    data = metrics_data(random.Random(4))
    while not any(each.scope_metrics for each in data.resource_metrics):
        data = metrics_data(random.Random(data.ByteSize()))
    decoder = Decoder()

    for offset in range(20):
        decoder.decode([topic_record(with_other_numbers(plain(data), random.Random(offset)), offset)])

    assert decoder.shapes.shapes == 1


def plain(data: MetricsData) -> MetricsData:
    """Only what Kafka clients send."""
    kept = MetricsData()
    scope = kept.resource_metrics.add().scope_metrics.add()
    made = scope.metrics.add(name="m")
    made.gauge.data_points.add(time_unix_nano=TIME_NS, as_double=1.0)
    return kept


def check_mutations(count: int) -> None:
    source = random.Random(20)
    decoder, reference = Decoder(), Decoder()
    bases = [data.SerializeToString() for data in (metrics_data(source) for _ in range(200))]
    for _ in range(count):
        payload = mutated(source.choice(bases), source)
        try:
            expected: PayloadPoints | None = decode_by_protobuf(
                payload, reference.series, reference.resources
            )
        except Undecodable:
            expected = None
        try:
            found: PayloadPoints | None = decoder.points_of(payload)
        except Undecodable:
            found = None
        assert (found is None) == (expected is None), payload.hex()
        if found is not None and expected is not None:
            assert described(found, decoder) == described(expected, reference), payload.hex()


def described(points: PayloadPoints, decoder: Decoder) -> list[Any]:
    """Points with the meaning of their numbers."""
    return [
        [decoder.series.values[number] for number in points.series.tolist()],
        points.times.tolist(),
        points.starts.tolist(),
        points.values.tolist(),
        len(points.histograms),
    ]


def test_mutated_payloads_are_read_or_refused_as_by_protobuf() -> None:
    check_mutations(10_000)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_many_mutated_payloads_are_read_or_refused_as_by_protobuf() -> None:
    check_mutations(int(os.environ.get("ODRADEK_MUTATED_PAYLOADS", "250000")))


def test_payloads_that_are_not_otlp_are_dead_letters() -> None:
    decoded = Decoder().decode([topic_record(b"\xff\xff", 3), topic_record(b"", 4)])

    (dead,) = decoded.dead_letter.to_pylist()
    assert (dead["src_offset"], dead["bytes"]) == (3, b"\xff\xff")
    assert "not OTLP" in dead["reason"]
    assert [row["src_offset"] for row in decoded.pushes.to_pylist()] == [4]


def test_a_record_of_another_producer_is_a_dead_letter() -> None:
    record = topic_record(b"", 9)._replace(headers=[])

    decoded = Decoder().decode([record])

    assert "header" in decoded.dead_letter.to_pylist()[0]["reason"]
    assert decoded.pushes.num_rows == 0


def test_payloads_beyond_the_bound_are_truncated_dead_letters() -> None:
    decoder = Decoder(DecoderSettings(max_payload_bytes=100, max_dead_letter_bytes=10))

    (dead,) = decoder.decode([topic_record(b"x" * 101)]).dead_letter.to_pylist()

    assert dead["bytes"] == b"x" * 10
    assert "101 bytes, the limit is 100" in dead["reason"]


def test_a_wrong_clock_moves_ts_at_most_to_the_bound() -> None:
    data = MetricsData()
    points = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge.data_points
    points.add(time_unix_nano=TIME_NS + 10**16, as_double=1)
    points.add(as_double=2)
    points.add(as_double=3, time_unix_nano=2**64 - 1, start_time_unix_nano=2**63)

    first, second, third = Decoder().decode([topic_record(data.SerializeToString())]).points.to_pylist()

    assert (first["ts"] - first["recv_ts"]).total_seconds() == 900
    assert (first["client_ts"] - first["recv_ts"]).total_seconds() == 10**7
    assert second["ts"] == second["recv_ts"]  # a missing time does not make it old
    assert second["client_ts"] is None
    assert (third["ts"] - third["recv_ts"]).total_seconds() == 900
    assert (third["client_ts"].year, third["start_ts"].year) == (2262, 2262)
    assert third["time_unix_nano"] == third["start_unix_nano"] == 2**63 - 1


def test_a_histogram_has_its_times_like_a_point() -> None:
    data = MetricsData()
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for time_ns, start_ns in ((0, 0), (TIME_NS + 10**16, TIME_NS), (2**64 - 1, 2**63)):
        for name in ("gauge", "histogram"):
            points = getattr(metrics.add(name=name), name).data_points
            points.add(time_unix_nano=time_ns, start_time_unix_nano=start_ns)

    decoded = Decoder().decode([topic_record(data.SerializeToString())])

    times = ["recv_ts", "ts", "client_ts", "start_ts", "time_unix_nano", "start_unix_nano"]
    assert decoded.histograms.select(times).to_pylist() == decoded.points.select(times).to_pylist()


def test_unsigned_numbers_beyond_their_column_are_the_largest_of_it() -> None:
    data, largest, most = MetricsData(), 2**64 - 1, 2**63 - 1
    metrics = data.resource_metrics.add().scope_metrics.add().metrics
    for count in (most, most + 1, largest):
        metrics.add(name="h").histogram.data_points.add(
            count=count, bucket_counts=[count, 1], explicit_bounds=[1]
        )
        exponential = metrics.add(name="e").exponential_histogram.data_points.add(
            count=count, zero_count=count
        )
        exponential.positive.bucket_counts.append(count)
        exponential.negative.bucket_counts.append(count)
        metrics.add(name="s").summary.data_points.add(count=count)

    found = Decoder().decode([topic_record(data.SerializeToString())]).histograms.to_pylist()

    assert {row["count"] for row in found} == {most}
    assert [row["counts"] for row in found if row["name"] == "h"] == [[most, 1]] * 3
    of_exponential = [row for row in found if row["name"] == "e"]
    assert {row["zero_count"] for row in of_exponential} == {most}
    assert [(row["pos_counts"], row["neg_counts"]) for row in of_exponential] == [([most], [most])] * 3


def test_receive_times_of_a_partition_never_decrease() -> None:
    records = [
        topic_record(b"", 0, received_ms=RECEIVED_MS),
        topic_record(b"", 1, received_ms=RECEIVED_MS - 5_000),
        topic_record(b"", 0, partition=1, received_ms=RECEIVED_MS - 5_000),
    ]

    pushes = Decoder().decode(records).pushes.to_pylist()

    seconds = [(row["recv_ts"] - pushes[0]["recv_ts"]).total_seconds() for row in pushes]
    assert seconds == [0, 0, -5]


@pytest.mark.parametrize(
    ("name", "table"),
    [("points", POINTS), ("histograms", HISTOGRAMS), ("pushes", PUSHES), ("dead_letter", DEAD_LETTER)],
)
def test_columns_are_those_of_the_tables(name: str, table: Table) -> None:
    payload = metrics_data(random.Random(2)).SerializeToString()

    batch = dict(Decoder().decode([topic_record(payload)]).batches())[name]

    assert batch.schema.names == table.schema.names


def test_random_layouts_stay_within_the_bounds() -> None:
    decoder = Decoder()
    decoder.shapes.max_shapes = 50

    for seed in range(300):
        payload = metrics_data(random.Random(seed)).SerializeToString()
        decoder.decode([topic_record(payload, seed)])

    assert 0 < decoder.shapes.shapes <= 50


def gauge_of(rack: str) -> bytes:
    data = plain(MetricsData())
    data.resource_metrics[0].resource.attributes.add(key="client_rack").value.string_value = rack
    return data.SerializeToString()


def test_cached_resources_are_evicted_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "MAX_LEARNED_BYTES", 100_000)
    decoder, most = Decoder(), 0

    for offset in range(500):
        rows = decoder.decode([topic_record(gauge_of(f"{offset:01000}"), offset)]).points.to_pylist()
        most = max(most, sum(map(len, decoder.resource_bytes)))
        assert rows[0]["client_rack"] == f"{offset:01000}"

    assert most <= 100_000 + 2_000


def test_an_oversized_layout_is_not_cached() -> None:
    decoder = Decoder()
    decoder.shapes.max_bytes = 1_500

    decoder.decode([topic_record(gauge_of("r" * 1_000))])

    assert (decoder.shapes.shapes, decoder.shapes.held_bytes) == (0, 0)


@pytest.mark.parametrize(
    ("labels", "node_id"),
    [
        ({"node_id": "node-1"}, "node-1"),
        ({"node.id": 1}, "node-1"),
        ({"node.id": -1}, "node--1"),
        ({"node.id": 7, "node_id": "node-2"}, "node-2"),
        ({}, None),
    ],
)
def test_the_node_of_a_point_has_one_column_for_all_clients(
    labels: dict[str, int | str], node_id: str | None
) -> None:
    """The Java client has a text under ``node_id``, librdkafka an integer under ``node.id``."""
    data = MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="a")
    point = metric.gauge.data_points.add(as_double=17.0, time_unix_nano=TIME_NS)
    for key, value in labels.items():
        attribute = point.attributes.add(key=key).value
        if isinstance(value, int):
            attribute.int_value = value
        else:
            attribute.string_value = value

    decoded = Decoder().decode([topic_record(data.SerializeToString())])

    (row,) = rows(decoded)["points"]
    assert (row["node_id"], json.loads(row["attrs"])) == (node_id, labels)


@pytest.mark.parametrize("label", ["broker_node_id", "node_id"])
def test_the_label_of_the_broker_is_not_the_node_of_a_point(label: str) -> None:
    """Records that are stored already have the label ``node_id``."""
    data = MetricsData()
    entry = data.resource_metrics.add()
    entry.resource.attributes.add(key=label).value.string_value = "1"
    metric = entry.scope_metrics.add().metrics.add(name="org.apache.kafka.producer.node.request.total")
    point = metric.sum.data_points.add(as_double=17.0, time_unix_nano=TIME_NS)
    point.attributes.add(key="node_id").value.string_value = "node--1"

    decoded = Decoder().decode([topic_record(data.SerializeToString())])

    (row,) = rows(decoded)["points"]
    assert (row["node_id"], row["broker_id"], row["resource"]) == ("node--1", 1, f'{{"{label}":"1"}}')


def with_header(name: str, value: bytes) -> TopicRecord:
    """A record of another producer."""
    record = topic_record(b"", 9)
    return record._replace(headers=[(each, value if each == name else old) for each, old in record.headers])


@pytest.mark.parametrize("value", [b"99999999999999999999", b"9223372036854775807", b"300000000000000"])
@pytest.mark.parametrize("name", ["received_ms", "push_interval_ms", "subscription_id", "broker_id"])
def test_a_number_that_no_column_can_hold_is_a_dead_letter(name: str, value: bytes) -> None:
    decoder = Decoder()
    decoder.decode([topic_record(b"", 8)])

    decoded = decoder.decode([with_header(name, value), topic_record(b"", 10)])

    assert [row["src_offset"] for row in decoded.dead_letter.to_pylist()] == [9]
    assert name in decoded.dead_letter.to_pylist()[0]["reason"]
    assert [row["src_offset"] for row in decoded.pushes.to_pylist()] == [10]


@pytest.mark.parametrize("timestamp_ms", [2**63 - 1, -(2**63), -1])
def test_a_dead_letter_has_a_day_whatever_its_time(timestamp_ms: int) -> None:
    record = topic_record(b"\xff\xff", 3)._replace(timestamp_ms=timestamp_ms)

    (dead,) = Decoder().decode([record]).dead_letter.to_pylist()

    assert dead["date"] == f"{dead['recv_ts']:%Y-%m-%d}"
    assert dead["src_offset"] == 3


def field(number: int, body: bytes) -> bytes:
    """A protobuf field with a length."""
    size, length = len(body), b""
    while size > 127:
        length += bytes([size & 127 | 128])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + body


POINT = b"\x19" + (5).to_bytes(8, "little") + b"\x21" + bytes(8)
GAUGE = field(1, field(2, field(2, field(1, b"m") + field(5, field(1, POINT)))))
HUGE = b"\x19" + b"\xff" * 8
RACK = field(1, field(1, b"client_rack") + field(2, field(1, b"r")))
SIX_BYTES = bytes([9 << 3 | 0x80]) + b"\x80" * 4 + b"\x00"


def deep(levels: int) -> bytes:
    """An attribute whose value is a nested list."""
    value = field(1, b"x")
    for _ in range(levels):
        value = field(5, field(1, value))
    return field(1, b"k") + field(2, value)


@pytest.mark.parametrize(
    "payload",
    [
        GAUGE + SIX_BYTES + b"\x01",
        GAUGE + bytes([9 << 3 | 3, 9 << 3 | 4]),
        field(1, field(2, field(2, field(1, b"\x19" + b"\xff" * 8) + field(5, field(1, HUGE * 2))))),
        field(1, b"\x8a\x80\x00" + field(1, RACK)[1:] + GAUGE[2:]),
        GAUGE + field(1, field(1, RACK) + GAUGE[2:]),
        GAUGE + bytes([9 << 3 | 2, 0x81]) + b"\x80" * 4 + b"\x00x",
        field(1, field(2, field(2, field(7, field(1, POINT) + b"\x18" + b"\x80" * 9 + b"\x02")))),
        *(field(1, field(1, field(1, deep(levels)))) for levels in range(44, 52)),
        *(field(1, field(2, field(1, field(3, deep(levels))))) for levels in range(44, 52)),
        *(field(1, field(2, field(2, field(12, deep(levels))))) for levels in range(44, 52)),
        *(
            field(1, field(2, field(2, field(5, field(1, POINT + field(7, deep(levels)))))))
            for levels in range(44, 52)
        ),
    ],
    ids=bytes.hex,
)
def test_unusual_bytes_are_accepted_or_refused_as_by_protobuf(payload: bytes) -> None:
    records = [topic_record(payload, offset) for offset in range(2)]

    assert rows(Decoder().decode(records)) == rows(ByProtobuf().decode(records))


def test_each_row_has_the_values_of_its_own_payload_and_headers() -> None:
    payloads = [gauge_of("rack-1"), two_kinds(), b"", gauge_of("rack-2"), two_kinds(), gauge_of("rack-1")]
    hour_ms = 3_600_000
    records = [
        topic_record(
            payload, offset, partition=offset % 2, client=offset, received_ms=RECEIVED_MS + offset * hour_ms
        )
        for offset, payload in enumerate(payloads)
    ]
    decoder = Decoder(DecoderSettings(clock_skew_max_ms=24 * hour_ms))

    decoded = [decoder.decode(records).points.to_pylist() for _ in range(2)]

    assert decoded[0] == decoded[1]
    timed = [[*(row[name] for name in OWN), row["client_ts"] is not None] for row in decoded[0]]
    assert timed == [
        [0, 0, 0, "client-0", "rack-1", "m", None, 1.0, None, True],
        [1, 1, 0, "client-1", None, "mixed", "t", 0.5, None, True],
        [1, 1, 1, "client-1", None, "mixed", None, None, -3, False],
        [1, 3, 0, "client-3", "rack-2", "m", None, 1.0, None, True],
        [0, 4, 0, "client-4", None, "mixed", "t", 0.5, None, True],
        [0, 4, 1, "client-4", None, "mixed", None, None, -3, False],
        [1, 5, 0, "client-5", "rack-1", "m", None, 1.0, None, True],
    ]
    assert all(
        row["recv_ts"].timestamp() * 1000 == RECEIVED_MS + row["src_offset"] * hour_ms for row in decoded[0]
    )
    assert all(row["hour"] == row["recv_ts"].hour for row in decoded[0])
    assert all(row["date"] == f"{row['recv_ts']:%Y-%m-%d}" for row in decoded[0])


OWN = (
    *("src_partition", "src_offset", "src_idx", "client_id", "client_rack", "name", "topic"),
    *("value", "value_int"),
)


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 17, 300])
def test_resources_that_differ_in_any_byte_are_distinguished(size: int) -> None:
    decoder = Decoder()
    alike = of_resources(["r" * size] * 3)
    decoder.decode([topic_record(alike)])

    for at in range(size):
        changed = "r" * at + "x" + "r" * (size - at - 1)
        payloads = [of_resources([changed, *["r" * size] * 2]), of_resources([*["r" * size] * 2, changed])]
        rows = decoder.decode([topic_record(each) for each in payloads]).points.to_pylist()

        assert [row["client_rack"] == changed for row in rows] == [True, False, False, False, False, True]
    assert decoder.shapes.shapes == 1


def of_resources(racks: list[str]) -> bytes:
    return b"".join(map(gauge_of, racks))


def two_kinds() -> bytes:
    """A double with attributes and a time, and an integer without either."""
    data = MetricsData()
    points = data.resource_metrics.add().scope_metrics.add().metrics.add(name="mixed").gauge.data_points
    points.add(time_unix_nano=TIME_NS, as_double=0.5).attributes.add(key="topic").value.string_value = "t"
    points.add(as_int=-3)
    return data.SerializeToString()


@pytest.mark.parametrize(
    ("ahead_s", "kept_s"), [(-901, -900), (-900, -900), (-1, -1), (0, 0), (899, 899), (901, 900)]
)
def test_ts_is_the_clients_clock_within_the_bound(ahead_s: int, kept_s: int) -> None:
    data = MetricsData()
    points = data.resource_metrics.add().scope_metrics.add().metrics.add(name="m").gauge.data_points
    points.add(time_unix_nano=TIME_NS + ahead_s * 10**9, as_double=1)

    (row,) = Decoder().decode([topic_record(data.SerializeToString())]).points.to_pylist()

    assert (row["ts"] - row["recv_ts"]).total_seconds() == kept_s
