"""The PROXY protocol at a gateway: the client is the one that the header names."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from contrib.capture.ports import free_range

from odradek.wire.proxy_header import SIGNATURE
from support.gateways import GatewayProcess, gateway_of
from support.hosts import running_host
from support.mapped_port import mapped_to
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

NODE, ADDRESS = 1, "10.1.2.3"
HEADERS = {
    "v1": b"PROXY TCP4 10.1.2.3 10.0.0.1 40312 9092\r\n",
    "v2": SIGNATURE
    + b"\x21\x11\0\x0c"
    + bytes([10, 1, 2, 3, 10, 0, 0, 1])
    + struct.pack(">HH", 40_312, 9092),
}
API_VERSIONS = b"\0\0\0\x0e\0\x12\0\0\0\0\0\x01\0\x04test"


@contextmanager
def behind(folder: Path, header: bytes) -> Iterator[tuple[int, GatewayProcess]]:
    """A gateway, and the port of the load balancer in front of it."""
    own = free_range(2)
    with (
        running_host(folder / "host", f"node.id={NODE}") as host,
        mapped_to(own, header=header) as port,
        mapped_to(own + 1, header=header) as node,
        gateway_of(
            host.bootstrap,
            folder / "gateway",
            f"listeners=PLAINTEXT://127.0.0.1:{own}",
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
            f"gateway.nodes={NODE}",
            f"gateway.advertised.port.start={node}",
            "listener.name.plaintext.proxy.protocol=required",
            "proxy.protocol.trusted=127.0.0.0/8",
            "plugins.stdout.enabled=true",
            "subscriptions.one.metrics=*",
            "subscriptions.one.interval.ms=200",
            f"subscriptions.one.match=client_source_address={ADDRESS}",
        ) as gateway,
    ):
        yield port, gateway


@pytest.mark.parametrize("version", HEADERS)
def test_selectors_and_labels_see_the_client_before_the_load_balancer(tmp_path: Path, version: str) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    with behind(tmp_path, HEADERS[version]) as (port, gateway):
        producer = kafka.Producer({"bootstrap.servers": f"127.0.0.1:{port}", "client.id": "proxied"})
        producer.produce("proxied", b"value")
        assert producer.flush(20) == 0
        # its own push: an incident that the gateway writes of it, such as an unknown topic, has no port
        push = gateway.next_push(
            lambda row: (
                row["context"]["client_id"] == "proxied"
                and any(name.startswith("org.apache.kafka.") for name in row["names"])
            )
        )
        producer.flush(1)

    assert push["context"]["client_source_address"] == ADDRESS
    assert push["context"]["client_source_port"] == 40_312


def test_a_client_without_a_header_is_closed_and_one_with_it_goes_on(tmp_path: Path) -> None:
    with behind(tmp_path, HEADERS["v2"]) as (port, gateway):
        host, _, own = gateway.bootstrap.rpartition(":")
        with WireClient((host, int(own))) as direct, WireClient(("127.0.0.1", port)) as good:
            direct.send_bytes(API_VERSIONS + bytes(100))

            good.introduce()
            assert direct.closed_by_peer()
            good.introduce()
