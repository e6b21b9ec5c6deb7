"""The way of a push into the tables: OTLP topics, records without labels, copies, clients that come twice."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
from spark_dataset import commit_ranges
from spark_payloads import RECEIVED_MS

from odradek.plugin import ClientTelemetryPayload, Origin, TelemetryRecord
from odradek.testing import request_context
from odradek.topic import TopicFormat, encode_headers, record_key
from odradek_spark.jobs.compact import merged
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Decoded, Decoder, DecoderSettings
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.files import write_files
from odradek_tables.log import live
from odradek_tables.query.questions import Window, clients
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import BY_NAME, INGESTED, PUSHES

TOPIC = "telemetry"
ORIGIN = Origin("x4Vb1KtGQ5a9IYmNqeLhWg", 0, 3)
LATE_MS = 600_000
OTLP = DecoderSettings(topic_format=TopicFormat.OTLP_PROTO)


def message(*services: str, value: float = 1.0, at_ms: int = RECEIVED_MS) -> bytes:
    """A request of OTLP with two gauges of each service."""
    data = MetricsData()
    for service in services:
        entry = data.resource_metrics.add()
        entry.resource.attributes.add(key="service.name").value.string_value = service
        for name in ("a", "b"):
            metric = entry.scope_metrics.add().metrics.add(name=name)
            metric.gauge.data_points.add(as_double=value, time_unix_nano=at_ms * 1_000_000)
    return data.SerializeToString()


def otlp(offset: int, value: bytes | None) -> TopicRecord:
    return TopicRecord(0, offset, RECEIVED_MS, b"any", value, [])


def host_record(offset: int, data: bytes, received_ms: int = RECEIVED_MS, **way: Any) -> TopicRecord:
    """A record with the headers of a host."""
    context = request_context(
        listener_name="EXTERNAL",
        security_protocol="SASL_SSL",
        client_address="10.0.0.7",
        client_port=40_000,
        node_id=7,
        principal="User:ann",
        client_software_name="apache-kafka-java",
        client_software_version="4.1.0",
        client_id="orders",
        received_ms=received_ms,
    )
    record = TelemetryRecord(context, 30_000, ClientTelemetryPayload(bytes([1]) * 16, False, data), **way)
    return TopicRecord(0, offset, received_ms, record_key(bytes([1]) * 16), data, encode_headers(record))


def stored(root: Path, decoded: Decoded, start: int, end: int) -> Dataset:
    """The rows in a dataset."""
    dataset = Dataset(str(root))
    dataset.create()
    for name, rows in decoded.batches():
        table = BY_NAME[name]
        commit_ranges(dataset, table, write_files(dataset.root, table, rows), {0: (start, end)})
    return dataset


def asked(dataset: Dataset, query: str) -> list[dict[str, Any]]:
    with closing(Reader(dataset.root)) as reader:
        found: list[dict[str, Any]] = reader.ask(query).to_pylist()
        return found


def test_each_client_of_an_otlp_message_is_a_push(tmp_path: Path) -> None:
    decoded = Decoder(OTLP).decode([otlp(0, message("billing", "orders")), otlp(1, message("orders"))])
    dataset = stored(tmp_path, decoded, 0, 2)

    pushes = decoded.pushes.to_pylist()
    assert [(row["client_id"], row["points"], row["src_offset"]) for row in pushes] == [
        ("billing", 2, 0),
        ("orders", 2, 0),
        ("orders", 2, 1),
    ]
    assert {(row["source"], row["observed"], row["push_interval_ms"]) for row in pushes} == {
        ("kafka", False, 60_000)
    }
    assert decoded.further == 1
    assert [row["src_idx"] for row in decoded.points.to_pylist()] == [0, 1, 2, 3, 0, 1]
    # The last message repeats the points of orders; those of billing are in the same record as the first.
    counted = asked(dataset, "SELECT client_id, count(*) AS n FROM v_points GROUP BY ALL ORDER BY ALL")
    assert counted == [{"client_id": "billing", "n": 2}, {"client_id": "orders", "n": 2}]


def test_a_malformed_otlp_message_is_one_dead_letter() -> None:
    decoded = Decoder(OTLP).decode([otlp(0, b"\xff"), otlp(1, None), otlp(2, b""), otlp(3, message("a"))])

    assert [row["src_offset"] for row in decoded.dead_letter.to_pylist()] == [0, 1]
    assert [row["src_offset"] for row in decoded.pushes.to_pylist()] == [3]


def test_a_record_that_no_host_has_labeled_gets_the_default_labels() -> None:
    data = message("orders")

    decoded = Decoder().decode([host_record(0, data, labeled=False, source="relay"), host_record(1, data)])

    unlabeled, labeled = decoded.points.to_pylist()[0], decoded.points.to_pylist()[2]
    assert unlabeled["resource"] == (
        '{"broker_node_id":"7","client_id":"orders","client_instance_id":"AQEBAQEBAQEBAQEBAQEBAQ",'
        '"client_software_name":"apache-kafka-java","client_software_version":"4.1.0",'
        '"client_source_address":"10.0.0.7","client_source_port":"40000","principal":"User:ann",'
        '"service.name":"orders"}'
    )
    assert labeled["resource"] == '{"service.name":"orders"}'
    assert [row["source"] for row in decoded.pushes.to_pylist()] == ["relay", None]
    assert len({row["payload_hash"] for row in decoded.pushes.to_pylist()}) == 1


def test_a_payload_that_cannot_be_labeled_is_a_dead_letter() -> None:
    decoded = Decoder().decode([host_record(0, b"\xff\xff", labeled=False)])

    assert decoded.dead_letter.num_rows == 1


def test_copies_of_a_record_count_once_however_late_they_come(tmp_path: Path) -> None:
    first, later = message("a"), message("a", value=2.0, at_ms=RECEIVED_MS + LATE_MS)
    records = [
        host_record(0, first, origin=ORIGIN),
        host_record(1, later, RECEIVED_MS + LATE_MS, origin=ORIGIN._replace(offset=4)),
        # Delivered again after an outage: rows of a batch are in the order of their times.
        host_record(2, first, origin=ORIGIN),
    ]
    dataset = stored(tmp_path, Decoder().decode(records), 0, 3)

    found = asked(dataset, "SELECT value, count(*) AS n FROM v_points GROUP BY ALL ORDER BY ALL")

    assert found == [{"value": 1.0, "n": 2}, {"value": 2.0, "n": 2}]
    assert asked(dataset, "SELECT origin FROM pushes WHERE src_offset = 2") == [
        {"origin": "x4Vb1KtGQ5a9IYmNqeLhWg-0@3"}
    ]


def test_a_client_that_comes_by_two_ways_is_found(tmp_path: Path) -> None:
    records = [host_record(0, message("a")), host_record(1, message("b"), source="otlp")]
    dataset = stored(tmp_path, Decoder().decode(records), 0, 2)

    with closing(Reader(dataset.root)) as reader:
        (row,) = clients(reader, Window()).to_pylist()

    assert (row["ways"], row["broker_id"], row["pushes"]) == ("otlp,pushed", 7, 2)


def old_rows(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.select([name for name in rows.schema.names if name not in PUSHES.added])


@pytest.fixture
def older(tmp_path: Path) -> Dataset:
    """A dataset of a version that did not know the provenance."""
    fields = [each for each in PUSHES.schema if each.name not in PUSHES.added]
    old = replace(PUSHES, schema=pa.schema(fields), added=())
    dataset = Dataset(str(tmp_path / "older"))
    dataset.create([each for each in INGESTED if each is not PUSHES])
    DeltaTable.create(dataset.uri(PUSHES), old.schema, partition_by=list(old.partitions))
    decoded = Decoder().decode([host_record(0, message("a"))])
    for name, rows in decoded.batches():
        table = old if name == "pushes" else BY_NAME[name]
        files = write_files(dataset.root, table, old_rows(rows) if table is old else rows)
        commit_ranges(dataset, table, files, {0: (0, 1)})
    return dataset


def test_tables_of_an_older_version_are_read_and_upgraded(older: Dataset) -> None:
    before = asked(older, "SELECT ways, pushes FROM v_clients")

    stored(Path(older.root), Decoder().decode([host_record(1, message("b"), source="relay")]), 1, 2)

    after = asked(older, "SELECT ways, pushes FROM v_clients")
    assert before == [{"ways": "pushed", "pushes": 1}]
    assert after == [{"ways": "pushed,relay", "pushes": 2}]
    assert {each.name for each in older.existing(PUSHES).schema().fields} == set(PUSHES.schema.names)


@pytest.mark.parametrize("upgraded", [False, True])
def test_files_of_an_older_version_are_compacted(older: Dataset, upgraded: bool) -> None:
    if upgraded:
        stored(Path(older.root), Decoder().decode([host_record(1, message("b"), source="relay")]), 1, 2)

    (new,) = merged(older.root, PUSHES, live(older.existing(PUSHES)))

    assert new.rows == 1 + upgraded
