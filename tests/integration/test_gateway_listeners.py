"""The listeners of a gateway: several at once, shared ports, idle clients, brokers without a port."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contrib.capture.ports import free_range

from odradek.client.admin import AdminClient
from support.certificates import Files
from support.gateways import GatewayProcess, gateway_of
from support.hosts import EVERYTHING, ThreadedHost, running_host
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

NODE = 1


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("upstream"), f"node.id={NODE}", *EVERYTHING) as host:
        yield host


def brokers(bootstrap: str, **more: object) -> dict[int, int]:
    """The ports of the brokers that a client sees, by node id."""
    with AdminClient(bootstrap, **more) as admin:  # type: ignore[arg-type]
        return {each.node_id: each.port for each in admin.metadata([]).brokers}


def by_listener(gateway: GatewayProcess) -> dict[str, str]:
    """The bootstrap addresses that the ready line names, by listener."""
    listeners = gateway.ready.split("listeners=")[1].split(" ")[0]
    return dict(each.split("://") for each in listeners.split(","))


def test_each_listener_advertises_its_own_ports(host: ThreadedHost, tmp_path: Path) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    files = Files(tmp_path)
    plain, secure = free_range(4), free_range(4)
    settings = (
        f"listeners=PLAINTEXT://127.0.0.1:{plain},SSL://localhost:{secure}",
        *files.settings,
    )
    with gateway_of(host.bootstrap, tmp_path / "gateway", *settings) as gateway:
        addresses = by_listener(gateway)
        seen = []
        for name, more in (
            ("PLAINTEXT", {}),
            ("SSL", {"security.protocol": "SSL", "ssl.ca.location": files.ca}),
        ):
            client = kafka.Producer({"bootstrap.servers": addresses[name], **more})
            client.produce("listeners", name.encode())
            assert client.flush(15) == 0
            ((found),) = client.list_topics(timeout=10).brokers.values()
            seen.append((found.host, found.port))

    assert seen == [("127.0.0.1", plain + 1 + NODE), ("localhost", secure + 1 + NODE)]


def test_a_listener_can_have_its_own_start_of_ports(host: ThreadedHost, tmp_path: Path) -> None:
    start, other, mapped = free_range(3), free_range(3), 40_000
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,PLAINTEXT_B://127.0.0.1:0",
        f"gateway.port.start={start}",
        f"listener.name.plaintext_b.gateway.port.start={other}",
        f"listener.name.plaintext_b.gateway.advertised.port.start={mapped}",
    )
    with gateway_of(host.bootstrap, tmp_path, *settings) as gateway:
        addresses = by_listener(gateway)

        assert brokers(addresses["PLAINTEXT"]) == {NODE: start + NODE}
        assert brokers(addresses["PLAINTEXT_B"]) == {NODE: mapped + NODE}
        with WireClient(("127.0.0.1", other + NODE)) as client:
            client.introduce()


def test_two_processes_share_their_ports(host: ThreadedHost, tmp_path: Path) -> None:
    port = free_range(4)
    settings = (f"listeners=PLAINTEXT://127.0.0.1:{port}", "gateway.reuse.port=true")
    with gateway_of(host.bootstrap, tmp_path / "1", *settings) as first:
        with gateway_of(host.bootstrap, tmp_path / "2", *settings) as second:
            both = {brokers(each.bootstrap)[NODE] for each in (first, second)}
        after = brokers(first.bootstrap)

    assert both == {port + 1 + NODE}
    assert after == {NODE: port + 1 + NODE}


def test_a_client_that_never_asks_is_closed_and_one_that_does_is_not(
    host: ThreadedHost, tmp_path: Path
) -> None:
    with gateway_of(host.bootstrap, tmp_path, "connections.max.idle.ms=3000") as gateway:
        name, _, port = gateway.bootstrap.rpartition(":")
        with WireClient((name, int(port))) as good:
            good.introduce()
            silent = WireClient((name, int(port)), timeout_s=30)
            with silent:
                silent.send_bytes(b"\0\0\0\x20\0")
                assert silent.closed_by_peer()
            good.introduce()


def test_a_broker_without_a_port_can_be_dialed_directly(host: ThreadedHost, tmp_path: Path) -> None:
    settings = ("gateway.nodes=5-7", "gateway.bypass.unmapped=true")
    with gateway_of(host.bootstrap, tmp_path, *settings) as gateway:
        assert brokers(gateway.bootstrap) == {NODE: host.address[1]}
