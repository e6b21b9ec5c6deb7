"""Clients of a cluster without telemetry push to gateways in front of it, whose records reach a topic of the
cluster.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.plugin.protocols import TelemetryRecord
from odradek.topic import decode_record
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.gateways import GatewayProcess, gateway_of
from support.hosts import ServeProcess, serving
from support.telemetry_records import resource_labels
from support.wire_client import WireClient

pytest.importorskip("confluent_kafka")
from confluent_kafka import Consumer, Producer, TopicPartition

pytestmark = [pytest.mark.timeout(120), pytest.mark.ci]

PATIENCE_S = 30
TOPIC = "client_telemetry"
QUICK_POLL = "gateway.subscriptions.interval.ms=300"
METRICS = bytes.fromhex("0a00")
EDGES = ("edge-1", "edge-2")
TELEMETRY_KEYS = {71, 72}


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster whose brokers offer no telemetry, and its gateways by name."""

    upstream: ServeProcess
    gateways: dict[str, GatewayProcess]


def exporting(upstream: str) -> tuple[str, ...]:
    """The settings of a gateway that exports to a topic of its own cluster."""
    return (f"plugins.kafka.bootstrap.servers={upstream}", f"plugins.kafka.topic={TOPIC}", QUICK_POLL)


@contextmanager
def cluster_with_gateways(folder: Path) -> Iterator[Cluster]:
    """The upstream and two gateways."""
    without_telemetry = ("--set", "telemetry.durability=memory", "--set", "node.id=1")
    with serving(folder / "upstream", *without_telemetry) as upstream:
        more = exporting(upstream.bootstrap)
        first, second = (
            gateway_of(upstream.bootstrap, folder / name, f"gateway.name={name}", *more) for name in EDGES
        )
        with first as one, second as two:
            yield Cluster(upstream, dict(zip(EDGES, (one, two), strict=True)))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster_with_gateways(tmp_path_factory.mktemp("gateways")) as made:
        yield made


def subscribe(bootstrap: str, name: str, metrics: str, client_id: str) -> None:
    """Set a subscription with `odradek client-metrics`."""
    command = [sys.executable, "-m", "odradek", "client-metrics", "--bootstrap-server", bootstrap, "--alter"]
    command += [
        "--name",
        name,
        "--metrics",
        metrics,
        "--interval",
        "300",
        "--match",
        f"client_id={client_id}",
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=30)


def eventually(found: Callable[[], object]) -> None:
    """Wait until something is true."""
    end_s = time.monotonic() + PATIENCE_S
    while not found():
        assert time.monotonic() < end_s
        time.sleep(0.05)


def requested(gateway: GatewayProcess, client_id: str) -> list[str]:
    """The metrics that a client is asked for."""
    with WireClient(address(gateway), client_id=client_id) as client:
        client.introduce()
        return list(client.subscriptions().requested_metrics)


def address(gateway: ServeProcess) -> tuple[str, int]:
    host, port = gateway.bootstrap.split(":")
    return host, int(port)


def offered(process: ServeProcess) -> set[int]:
    """The keys of the offered telemetry APIs."""
    with WireClient(address(process)) as client:
        response = client.send(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
        return {row.api_key for row in response.api_keys} & TELEMETRY_KEYS


def exported(cluster: Cluster, wanted: Callable[[TelemetryRecord], bool]) -> TelemetryRecord:
    """The first record of the upstream topic for which ``wanted`` is true."""
    settings = {
        "bootstrap.servers": cluster.upstream.bootstrap,
        "group.id": "t",
        "enable.metrics.push": False,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    try:
        end_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < end_s:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                record = decode_record(message.key(), message.value(), message.headers() or [])
                if wanted(record):
                    return record
        raise AssertionError("no such record")
    finally:
        consumer.close()


def noting(errors: list[object]) -> Callable[[object, object], None]:
    """A delivery report that keeps the errors."""

    def report(error: object, _message: object) -> None:
        if error is not None:
            errors.append(error)

    return report


def test_the_brokers_offer_no_telemetry_and_the_gateways_do(cluster: Cluster) -> None:
    assert offered(cluster.upstream) == set()
    assert [offered(gateway) for gateway in cluster.gateways.values()] == [TELEMETRY_KEYS] * 2


@pytest.mark.parametrize("name", EDGES)
def test_a_real_client_pushes_through_a_gateway(cluster: Cluster, name: str) -> None:
    gateway, client_id = cluster.gateways[name], f"producer-of-{name}"
    subscribe(gateway.bootstrap, client_id, "org.apache.kafka.producer.", client_id)
    eventually(lambda: requested(gateway, client_id))
    producer = Producer({"bootstrap.servers": gateway.bootstrap, "client.id": client_id})
    errors: list[object] = []

    def from_client(record: TelemetryRecord) -> bool:
        return record.context.client_id == client_id and record.payload.data != b""

    end_s = time.monotonic() + 3
    while time.monotonic() < end_s:
        producer.produce("orders", b"x", on_delivery=noting(errors))
        producer.poll(0.02)

    assert producer.flush(10) == 0
    assert errors == []
    record = exported(cluster, from_client)
    connection = record.context.connection
    assert connection.client_address == "127.0.0.1"
    assert connection.client_software_name == "confluent-kafka-python"
    assert connection.node_id in (1, -1)
    labels = resource_labels(record.payload.data)
    assert labels["gateway"] == name
    assert labels["broker_node_id"] == str(connection.node_id)
    assert (labels["principal"], labels["principal_source"]) == ("User:ANONYMOUS", "none")
    with AdminClient(cluster.upstream.bootstrap) as admin:
        assert labels["cluster_id"] == admin.metadata([]).cluster_id


def test_a_node_is_named_by_its_port(cluster: Cluster) -> None:
    gateway = cluster.gateways["edge-1"]
    with AdminClient(gateway.bootstrap) as admin:
        (broker,) = admin.metadata([]).brokers
    subscribe(cluster.upstream.bootstrap, "by-port", "by.port.", "by-port")
    eventually(lambda: requested(gateway, "by-port"))

    with WireClient((broker.host, broker.port), client_id="by-port") as client:
        client.introduce()
        assert client.push(METRICS) == ErrorCode.NONE

    record = exported(cluster, lambda record: record.context.client_id == "by-port")
    assert broker.port != address(gateway)[1]
    assert record.context.connection.node_id == 1
    assert resource_labels(record.payload.data)["broker_node_id"] == "1"


def test_a_subscription_of_the_cluster_becomes_effective_and_ends_at_both_gateways(cluster: Cluster) -> None:
    def asked() -> list[list[str]]:
        return [requested(gateway, "changing") for gateway in cluster.gateways.values()]

    subscribe(cluster.upstream.bootstrap, "changing", "first.", "changing")
    eventually(lambda: asked() == [["first."]] * 2)
    subscribe(cluster.gateways["edge-1"].bootstrap, "changing", "second.", "changing")
    eventually(lambda: asked() == [["second."]] * 2)
    keys = ("metrics", "interval.ms", "match")
    deleted = [ConfigChange(key, None, ConfigOperation.DELETE) for key in keys]
    with AdminClient(cluster.upstream.bootstrap) as admin:
        admin.incremental_alter_configs({ConfigResource(ResourceType.CLIENT_METRICS, "changing"): deleted})
    eventually(lambda: asked() == [[], []])


def test_a_client_may_ask_one_gateway_and_push_to_the_other(cluster: Cluster) -> None:
    subscribe(cluster.upstream.bootstrap, "moving", "moving.", "moving")
    one, two = cluster.gateways.values()
    eventually(lambda: requested(one, "moving") and requested(two, "moving"))

    with WireClient(address(one), client_id="moving") as client:
        got = client.subscriptions()
    with WireClient(address(two), client_id="moving") as client:
        pushed = client.send(
            PushTelemetryRequest(
                client_instance_id=got.client_instance_id,
                subscription_id=got.subscription_id,
                metrics=METRICS,
            )
        )

    assert pushed.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("full", "answer"), [("throttle", ErrorCode.THROTTLING_QUOTA_EXCEEDED), ("drop", ErrorCode.NONE)]
)
def test_a_spool_that_is_full_does_not_stop_producers(tmp_path: Path, full: str, answer: ErrorCode) -> None:
    with (
        serving(tmp_path / "upstream", "--set", "node.id=1") as upstream,
        gateway_of(
            upstream.bootstrap,
            tmp_path / "gateway",
            "telemetry.log.max.bytes=0",
            f"gateway.spool.full={full}",
            "subscriptions.all.metrics=*",
            "subscriptions.all.interval.ms=100",
        ) as gateway,
    ):
        with WireClient(address(gateway)) as client:
            answered = client.push(METRICS)
        producer = Producer({"bootstrap.servers": gateway.bootstrap, "client.id": "orders"})
        errors: list[object] = []
        for number in range(500):
            producer.produce("orders", b"%d" % number, on_delivery=noting(errors))
            producer.poll(0)

        assert producer.flush(10) == 0
        assert errors == []
        assert answered == answer
