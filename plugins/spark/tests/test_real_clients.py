"""Metrics of real clients, from push to row: compared value by value with the payload."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from ingested import offsets, rows, until

import odradek.testing
from integration.java.jvm import Jvm
from odradek.testing import DataPoint, RunningHost
from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.settings import IngestSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
CLASSPATH = Path(__file__).resolve().parents[3] / "contrib" / "java" / "classpath.py"
GAUGE, SUM, DELTA, CUMULATIVE = 1, 2, 1, 2
COLUMNS = (
    *("client_instance_id", "client_id", "name", "unit", "kind", "temporality", "monotonic"),
    *("attrs", "resource", "time_unix_nano", "start_unix_nano", "value", "value_int"),
)


def ingest(spark: SparkSession, host: RunningHost, dataset: Path) -> None:
    given = IngestSettings(bootstrap_servers=host.bootstrap, dataset=str(dataset))
    run_ingest(spark, given, once=True)


def as_sent(host: RunningHost) -> list[tuple[Any, ...]]:
    """Every data point that the host accepted, parsed by protobuf, in the columns of the table."""
    return in_order(
        (push.request.client_instance_id.hex(), push.client_id, *as_row(point))
        for push in host.telemetry.pushes
        for point in push.points
    )


def as_row(point: DataPoint) -> tuple[Any, ...]:
    is_sum, is_int = point.kind == "sum", point.raw.WhichOneof("value") == "as_int"
    return (
        point.metric,
        point.unit,
        SUM if is_sum else GAUGE,
        (DELTA if point.delta else CUMULATIVE) if is_sum else 0,
        point.monotonic,
        dict(point.attributes),
        dict(point.resource),
        point.raw.time_unix_nano,
        point.raw.start_time_unix_nano,
        None if is_int else repr(point.value),  # one NaN is not equal to another
        point.value if is_int else None,
    )


def as_ingested(dataset: Path) -> list[tuple[Any, ...]]:
    """The rows of the table of points."""
    return in_order(
        (
            hex_of(instance),
            *some,
            monotonic is True,
            json.loads(attrs),
            json.loads(resource),
            at,
            start or 0,
            *values,
        )
        for instance, *some, monotonic, attrs, resource, at, start, value, value_int in rows_of(dataset)
        for values in [(None if value is None else repr(value), value_int)]
    )


def rows_of(dataset: Path) -> list[tuple[Any, ...]]:
    return rows(dataset, "points", *COLUMNS)


def in_order(found: Any) -> list[tuple[Any, ...]]:
    """Rows in an order that does not depend on that of labels."""
    return sorted(
        found,
        key=lambda row: [repr(sorted(each.items()) if isinstance(each, dict) else each) for each in row],
    )


def hex_of(instance: str) -> str:
    return base64.urlsafe_b64decode(instance + "==").hex()


def test_rows_contain_the_values_of_librdkafka(spark: SparkSession, tmp_path: Path) -> None:
    with odradek.testing.host(telemetry_durability="log") as host:
        host.subscribe("*", interval_ms=200)
        servers = {"bootstrap.servers": host.bootstrap}
        producer = Producer(servers | {"client.id": "orders"})
        consumer = Consumer(
            servers | {"client.id": "billing", "group.id": "g", "auto.offset.reset": "earliest"}
        )
        consumer.subscribe(["sales"])

        def both_have_pushed() -> bool:
            producer.produce("sales", b"value")
            producer.poll(0)
            consumer.poll(0.05)
            named = [each.client_id for each in host.telemetry.pushes if each.points]
            points = sum(len(each.points) for each in host.telemetry.pushes)
            return min(named.count("orders"), named.count("billing")) >= 3 and points > 100

        until(both_have_pushed)
        producer.flush(5)
        producer.close()
        consumer.close()
        # what a client has sent before it closes is answered first
        until(lambda: not any(each.channels for each in host.host.listeners))
        sent, pushes = as_sent(host), len(host.telemetry.pushes)
        ingest(spark, host, tmp_path / "d")

    assert as_ingested(tmp_path / "d") == sent
    goodbyes = len(offsets(tmp_path / "d")) - pushes
    assert 0 <= goodbyes <= 2  # the host writes one for a client that closes without a terminating push
    assert {each[1] for each in sent} == {"orders", "billing"}
    assert len(sent) > 100


def test_rows_contain_the_values_of_java(spark: SparkSession, tmp_path: Path) -> None:
    built = subprocess.run([sys.executable, str(CLASSPATH)], capture_output=True, text=True, check=False)
    if built.returncode == 3:
        pytest.skip(f"no Java class path: {built.stderr.strip()}")
    with odradek.testing.host(telemetry_durability="log") as host:
        host.subscribe("*", interval_ms=500)
        done = Jvm(built.stdout.strip()).run(
            "odradek.TelemetryProducer", host.bootstrap, "sales", "3", "java-orders"
        )
        assert done.status == 0, done.said
        sent, pushes = as_sent(host), len(host.telemetry.pushes)
        ingest(spark, host, tmp_path / "d")

    assert as_ingested(tmp_path / "d") == sent
    assert len(offsets(tmp_path / "d")) == pushes
    assert {each[1] for each in sent} == {"java-orders"}
    assert len(sent) > 100
