"""Two gateways behind one load balancer advertise its name, with a port or with a name for each node."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from contrib.capture.ports import free_range

from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.metadata import MetadataRequest
from support.certificates import Files, authority
from support.gateways import GatewayProcess, gateway_of
from support.hosts import EVERYTHING, running_host
from support.mapped_port import mapped_to
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

NODE = 1
NAME, NODE_NAMES, NODE_NAME = "localhost", "0x7f00000$(nodeId)", "0x7f000001"
"""librdkafka sends such a name to the server, and the C library reads it as the address 127.0.0.1."""
RECORDS = 2_000
DELAY = "group.initial.rebalance.delay.ms=0"


@dataclass(frozen=True, slots=True)
class Balanced:
    """Two gateways, and the addresses of the balancer in front of them."""

    gateways: list[GatewayProcess]
    port: int
    node: tuple[str, int]
    """The address that both advertise for the node."""
    files: Files | None
    """The certificates, if there is TLS."""

    def connected(self) -> WireClient:
        """A client at the next gateway."""
        client = WireClient(("127.0.0.1", self.port))
        if self.files is not None:
            context = ssl.create_default_context(cafile=self.files.ca)
            client.socket = context.wrap_socket(client.socket, server_hostname=NAME)
        return client

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of a librdkafka client."""
        settings: dict[str, Any] = {"bootstrap.servers": f"{NAME}:{self.port}"}
        if self.files is not None:
            settings |= {"security.protocol": "SSL", "ssl.ca.location": self.files.ca}
        return settings


@pytest.fixture(scope="module", params=["ports", "names"])
def balanced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    folder, first = tmp_path_factory.mktemp("balanced"), free_range(4)
    files = Files(folder) if request.param == "names" else None
    with contextlib.ExitStack() as stack:
        host = stack.enter_context(running_host(folder / "host", f"node.id={NODE}", *EVERYTHING, DELAY))
        shared = stack.enter_context(mapped_to(first, first + 2))
        node = NAME, stack.enter_context(mapped_to(first + 1, first + 3))
        if files is None:
            settings = [
                f"advertised.listeners=PLAINTEXT://{NAME}:{shared}",
                f"gateway.nodes={NODE}",
                f"gateway.advertised.port.start={node[1]}",
            ]
        else:
            node = NODE_NAME, shared
            key_store = files.write("gateway.pem", authority().issue("gateway", [NAME, NODE_NAME]).both)
            settings = [
                f"advertised.listeners=SSL://{NAME}:{shared}",
                f"gateway.nodes={NODE}",
                f"gateway.node.names={NODE_NAMES}",
                f"ssl.keystore.location={key_store}",
            ]
        protocol = "PLAINTEXT" if files is None else "SSL"
        gateways = [
            stack.enter_context(
                gateway_of(
                    host.bootstrap,
                    folder / f"data-{port}",
                    f"listeners={protocol}://127.0.0.1:{port}",
                    "plugins.stdout.enabled=true",
                    f"gateway.name=gateway-{port}",
                    *settings,
                )
            )
            for port in (first, first + 2)
        ]
        yield Balanced(gateways, shared, node, files)


def test_both_advertise_the_balancer_and_give_one_subscription_id(balanced: Balanced) -> None:
    ids, nodes, client_instance_id = set(), set(), bytes(16)
    for _ in balanced.gateways:
        with balanced.connected() as client:
            brokers = client.send(MetadataRequest(topics=[]), 12).brokers
            nodes.add(tuple((each.node_id, each.host, each.port) for each in brokers))
            request = GetTelemetrySubscriptionsRequest(client_instance_id=client_instance_id)
            found = client.send(request, 0)
            client_instance_id = found.client_instance_id
            ids.add(found.subscription_id)

    assert nodes == {((NODE, *balanced.node),)}
    assert len(ids) == 1


def test_clients_go_on_at_the_other_gateway_and_their_pushes_too(balanced: Balanced) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    failures: list[object] = []
    delivered = 0

    def noted(error: object, _message: object) -> None:
        nonlocal delivered
        if error is None:
            delivered += 1
        else:
            failures.append(error)

    producer = kafka.Producer(balanced.settings | {"enable.idempotence": True, "client.id": "moved"})
    for number in range(RECORDS // 2):
        producer.produce("balanced", str(number), partition=0, on_delivery=noted)
    producer.flush(20)
    stopped, left = balanced.gateways
    assert stopped.terminate() == 0
    for number in range(RECORDS // 2, RECORDS):
        producer.produce("balanced", str(number), partition=0, on_delivery=noted)
    wait_until(lambda: bool(producer.flush(0.2) == 0), "all records are acknowledged", patience_s=30)
    push = left.next_push(lambda row: row["context"]["client_id"] == "moved")
    consumer = kafka.Consumer(balanced.settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["balanced"])
    found: list[bytes] = []
    while len(found) < RECORDS and (messages := consumer.consume(500, 10)):
        found += [message.value() for message in messages]
    consumer.close()
    producer.flush(1)

    assert (failures, delivered) == ([], RECORDS)
    assert found == [str(number).encode() for number in range(RECORDS)]
    assert push["labels"]["gateway"] == f"gateway-{left.bootstrap.rpartition(':')[2]}"
