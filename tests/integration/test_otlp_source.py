"""OTLP in: an OpenTelemetry SDK sends its metrics to a host, which labels, stores and forwards them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import odradek_enrich
import odradek_otlp
from odradek.plugin import record_key
from odradek.server.plugins.plugin_manager import HostPluginManager
from support.accounts import assert_accounts_balance
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.kafka_export import read
from support.spooling import FAST, FarSide, Plugin, push_all
from support.telemetry_records import resource_labels
from support.waiting import wait_until


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


@contextmanager
def taking(data_dir: Path, far_side: FarSide, port: int, *overrides: str) -> Iterator[ThreadedHost]:
    plugins = HostPluginManager()
    plugins.add("otlp", odradek_otlp, "odradek-otlp", "1")
    plugins.add("enrich", odradek_enrich, "odradek-enrich", "1")
    plugins.add("fake", Plugin({"all": far_side}), "fake", "1")
    listening = f"plugins.otlp.source.http.listener=127.0.0.1:{port}"
    with running_host(data_dir, *FAST, *EVERYTHING, listening, *overrides, plugins=plugins) as host:
        wait_until(lambda: answers(port), "nothing listens")
        yield host
        host.call(lambda: assert_accounts_balance(host.host))


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def send(port: int, service: str) -> None:
    """Export a counter once, as an application does when it ends."""
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource

    exporter = OTLPMetricExporter(
        f"http://127.0.0.1:{port}/v1/metrics", compression=Compression.Gzip, timeout=10
    )
    reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3_600_000)
    provider = MeterProvider([reader], Resource.create({"service.name": service}), shutdown_on_exit=False)
    provider.get_meter("app").create_counter("orders").add(3)
    provider.shutdown()


def test_an_sdk_and_a_kafka_client_arrive_side_by_side(tmp_path: Path) -> None:
    far_side, port = FarSide(), free_port()

    with taking(tmp_path, far_side, port) as host:
        send(port, "billing")
        push_all(host, range(1))
        wait_until(lambda: len(far_side.taken) == 2, lambda: far_side.names)
        messages = read(host.bootstrap, "__client_telemetry", 2)
        (runner,) = host.host.sources.runners
        accounts = runner.entrance.accounts

    assert (accounts.received, accounts.appended) == (1, 1)
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


def test_two_services_are_two_clients(tmp_path: Path) -> None:
    far_side, port = FarSide(), free_port()

    with taking(tmp_path, far_side, port):
        for service in ("billing", "orders", "billing"):
            send(port, service)
        wait_until(lambda: len(far_side.taken) == 3, lambda: far_side.names)

    assert len({record.payload.client_instance_id for record in far_side.taken}) == 2
