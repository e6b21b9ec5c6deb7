"""OTLP in: OpenTelemetry SDKs send their metrics to a host, which labels, stores and forwards them."""

from __future__ import annotations

import json
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import pytest
from contrib.capture.ports import answers, free_port
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExporter, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

import odradek_enrich
import odradek_kafka
import odradek_otlp
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.otlp import metrics_of_json
from odradek.topic import record_key
from odradek_kafka.otlp_json import otlp_json
from support.accounts import assert_accounts_balance
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.kafka_export import TOPIC, read
from support.otlp_source import (
    ANYWHERE,
    ScriptedIntake,
    body_of,
    entry,
    fail_now_and_then,
    running_source,
    source_of,
)
from support.spooling import FAST, FarSide, Plugin, push_all
from support.telemetry_records import resource_labels
from support.waiting import wait_until

METHOD = "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"
PATIENCE_S = 60.0
PROTOCOLS = ["http", "grpc"]


@contextmanager
def taking(
    data_dir: Path, far_side: FarSide, port: int, *overrides: str, protocol: str = "http"
) -> Iterator[ThreadedHost]:
    plugins = HostPluginManager()
    plugins.add("otlp", odradek_otlp, "odradek-otlp", "1")
    plugins.add("kafka", odradek_kafka, "odradek-kafka", "1")
    plugins.add("enrich", odradek_enrich, "odradek-enrich", "1")
    plugins.add("fake", Plugin({"all": far_side}), "fake", "1")
    listening = f"plugins.otlp.source.{protocol}.listener=127.0.0.1:{port}"
    with running_host(data_dir, *FAST, *EVERYTHING, listening, *overrides, plugins=plugins) as host:
        wait_until(lambda: answers(port), "nothing listens")
        yield host
        host.call(lambda: assert_accounts_balance(host.host))


def exporter_of(protocol: str, port: int) -> MetricExporter:
    if protocol == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcExporter

        return GrpcExporter(f"127.0.0.1:{port}", insecure=True, compression=grpc.Compression.Gzip, timeout=30)
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpExporter

    url = f"http://127.0.0.1:{port}/v1/metrics"
    return HttpExporter(url, compression=Compression.Gzip, timeout=30)


def send(port: int, service: str, protocol: str = "http") -> None:
    """Export a counter once, as an application does when it ends."""
    reader = PeriodicExportingMetricReader(exporter_of(protocol, port), export_interval_millis=3_600_000)
    provider = MeterProvider([reader], Resource.create({"service.name": service}), shutdown_on_exit=False)
    provider.get_meter("app").create_counter("orders").add(3)
    provider.shutdown()


def requests_of(host: ThreadedHost) -> dict[str, int]:
    return source_of(host).entrance.requests.copy()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_sdk_and_a_kafka_client_arrive_side_by_side(tmp_path: Path, protocol: str) -> None:
    far_side, port = FarSide(), free_port()

    with taking(tmp_path, far_side, port, protocol=protocol) as host:
        send(port, "billing", protocol)
        push_all(host, range(1))
        wait_until(lambda: len(far_side.taken) == 2, lambda: far_side.names)
        messages = read(host.bootstrap, "__client_telemetry", 2)
        accounts = source_of(host).entrance.accounts
        requests = [row for row in host.call(host.host.metric_rows) if row.name == "odradek.source.requests"]

    assert (accounts.received, accounts.appended) == (1, 1)
    (row,) = requests
    assert (row.attributes, row.value) == ({"source": "otlp", "outcome": "accepted"}, 1)
    by_source = {record.source: record for record in far_side.taken}
    record = by_source["otlp"]
    labels = resource_labels(record.payload.data)
    assert set(by_source) == {None, "otlp"}
    assert record.labeled
    assert record.context.connection.client_software_name == "opentelemetry"
    assert labels["client_id"] == labels["service.name"] == "billing"
    assert labels["client_instance_id"] == record_key(record.payload.client_instance_id).decode()
    assert b"orders" in record.payload.data
    headers = [dict(message.headers()) for message in messages]
    assert sorted(each.get("source", b"") for each in headers) == [b"", b"otlp"]
    assert not any("labeled" in each for each in headers)


def test_metrics_of_an_sdk_go_the_whole_way_with_labels_and_provenance(tmp_path: Path) -> None:
    """In over gRPC; out over gRPC, and to a topic of a cluster."""
    collector, port = ScriptedIntake(), free_port()
    with ExitStack() as stack:
        out = stack.enter_context(running_source(collector, grpc=ANYWHERE))
        cluster = stack.enter_context(running_host(tmp_path / "cluster"))
        settings = (
            f"plugins.otlp.endpoint=http://127.0.0.1:{out}",
            "plugins.otlp.protocol=grpc",
            "plugins.otlp.batch.max.age.ms=20",
            f"plugins.kafka.bootstrap.servers={cluster.bootstrap}",
            "plugins.kafka.batch.max.age.ms=20",
            "plugins.enrich.static.site=here",
        )
        taken = taking(tmp_path / "host", FarSide(), port, *settings, protocol="grpc")
        host = stack.enter_context(taken)
        send(port, "billing", "grpc")
        wait_until(lambda: collector.stored, "nothing was forwarded", PATIENCE_S)
        (in_log,) = read(host.bootstrap, "__client_telemetry", 1)
        (exported,) = read(cluster.bootstrap, TOPIC, 1)

    (forwarded,) = collector.stored
    payloads = [in_log.value(), exported.value(), forwarded.payload.data]
    labels = resource_labels(payloads[0])
    assert [resource_labels(payload) for payload in payloads] == [labels] * 3
    assert (labels["site"], labels["client_id"], labels["service.name"]) == ("here", "billing", "billing")
    assert labels["client_source_address"] == "127.0.0.1"
    for message in (in_log, exported):
        headers = dict(message.headers())
        assert (headers["source"], headers["client_source_address"]) == (b"otlp", b"127.0.0.1")
        assert headers["listener"] == b"OTLP"


def test_two_services_are_two_clients(tmp_path: Path) -> None:
    far_side, port = FarSide(), free_port()

    with taking(tmp_path, far_side, port):
        for service in ("billing", "orders", "billing"):
            send(port, service)
        wait_until(lambda: len(far_side.taken) == 3, lambda: far_side.names)

    assert len({record.payload.client_instance_id for record in far_side.taken}) == 2


def test_what_the_kafka_plugin_writes_as_json_is_read_as_it_was() -> None:
    data = body_of(entry("load", points=3, service__name="billing"), entry("other", host="b"))

    assert metrics_of_json(otlp_json(data)) == data


@pytest.mark.parametrize("protocol", ["grpc", "json"])
def test_a_log_that_is_full_now_and_then_loses_and_doubles_nothing(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek_otlp.reception.ROOM_S", 0.0)
    bodies = [body_of(*(entry(host=f"{request}-{each}") for each in range(70))) for request in range(5)]
    far_side, port = FarSide(), free_port()

    listener = "grpc" if protocol == "grpc" else "http"
    with taking(tmp_path, far_side, port, protocol=listener) as host:
        fail_now_and_then(host)
        attempts = [repeated(port, body, protocol) for body in bodies]
        wait_until(lambda: len(far_side.taken) >= 350, lambda: len(far_side.taken), PATIENCE_S)
        requests = requests_of(host)

    assert max(attempts) > 1
    assert requests == {"accepted": 5, "no-room": sum(attempts) - 5}
    hosts = Counter(resource_labels(record.payload.data)["host"] for record in far_side.taken)
    assert hosts == Counter(f"{request}-{each}" for request in range(5) for each in range(70))


def repeated(port: int, body: bytes, protocol: str) -> int:
    """Send a request until it is accepted; return the number of attempts."""
    for attempt in range(1, 20):
        if (post_json if protocol == "json" else call)(port, body):
            return attempt
    raise AssertionError("not accepted")


def call(port: int, body: bytes) -> bool:
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        try:
            channel.unary_unary(METHOD, None, None)(body, timeout=PATIENCE_S)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return False
            raise
    return True


def post_json(port: int, body: bytes) -> bool:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/metrics", otlp_json(body), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
            assert json.load(answer) == {}
    except urllib.error.HTTPError as error:
        with error:
            if error.code == 503:
                return False
            raise
    return True
