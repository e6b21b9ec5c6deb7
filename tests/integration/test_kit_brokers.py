"""Clients of a host that plays several brokers: they are spread, and leave a broker that closes."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

import pytest

import odradek.testing
from odradek.client.partitioner import partition_of
from odradek.plugin import ConfigError
from odradek.testing import RunningHost
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.metadata import MetadataRequest
from support.wire_client import WireClient

PATIENCE_S = 20.0
GROUPS = [f"group-{number}" for number in range(12)]


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    host = odradek_hosts(brokers=3)
    host.topics.create("t", 6)
    return host


def test_metadata_shows_brokers_on_ports_of_their_own_and_leaders_on_each(host: RunningHost) -> None:
    with WireClient(host.address) as client:
        metadata = client.send(MetadataRequest(topics=None), 12)
        described = client.send(DescribeClusterRequest(), 0)
        topics = client.send(DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]), 0).topics

    ports = {each.node_id: each.port for each in metadata.brokers}
    assert list(ports) == [1, 2, 3] == host.brokers.ids
    assert len(set(ports.values())) == 3
    assert host.bootstrap == ",".join(f"127.0.0.1:{port}" for port in ports.values())
    assert metadata.controller_id == 1
    leaders = [each.leader_id for each in metadata.topics[0].partitions]
    assert sorted(leaders) == [1, 1, 2, 2, 3, 3]
    assert leaders == [host.brokers.leader("t", index) for index in range(6)]
    assert {each.broker_id: each.port for each in described.brokers} == ports
    assert [each.leader_id for each in topics[0].partitions] == leaders


def test_coordinators_are_spread(host: RunningHost) -> None:
    with WireClient(host.address) as client:
        found = client.send(FindCoordinatorRequest(coordinator_keys=GROUPS), 4).coordinators

    assert {each.node_id for each in found} == {1, 2, 3}
    assert [each.node_id for each in found] == [host.brokers.coordinator(group) for group in GROUPS]


def test_a_closed_broker_refuses_connections_until_it_opens(host: RunningHost) -> None:
    port = host.config.listeners[1].port
    led = [index for index in range(6) if host.brokers.leader("t", index) == 2]
    with WireClient(("127.0.0.1", port)) as client:
        client.introduce()
        host.brokers.close(2)
        assert client.closed_by_peer()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    with WireClient(host.address) as client:
        assert [each.node_id for each in client.send(MetadataRequest(topics=None), 12).brokers] == [1, 3]
    assert all(host.brokers.leader("t", index) in (1, 3) for index in range(6))

    host.brokers.open(2)

    with WireClient(("127.0.0.1", port)) as client:
        client.introduce()
        assert host.brokers.connections(2) == 1
    assert [index for index in range(6) if host.brokers.leader("t", index) == 2] == led


def test_a_restart_opens_all_brokers_on_their_ports(host: RunningHost) -> None:
    before = host.bootstrap
    host.brokers.close(3)

    host.restart()

    assert (host.bootstrap, host.brokers.ids) == (before, [1, 2, 3])


def test_a_producer_and_a_consumer_leave_a_broker_that_closes(host: RunningHost) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    keys = {host.brokers.leader("t", partition_of(key, 6)): key for key in (b"%d" % n for n in range(40))}
    group = next(group for group in GROUPS if host.brokers.coordinator(group) == 2)
    settings = {"bootstrap.servers": host.bootstrap, "reconnect.backoff.max.ms": 100, "log_level": 0}
    producer = kafka.Producer({**settings, "partitioner": "murmur2_random"})
    consumer = kafka.Consumer({**settings, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])

    def read(count: int) -> list[bytes]:
        found: list[bytes] = []
        deadline_s = time.monotonic() + PATIENCE_S
        while len(found) < count and time.monotonic() < deadline_s:
            found += [message.value() for message in consumer.consume(10, 0.05) if message.error() is None]
        return found

    try:
        for key in keys.values():
            producer.produce("t", b"before", key)
        assert producer.flush(PATIENCE_S) == 0
        assert read(3) == [b"before"] * 3
        host.brokers.close(2)
        for key in keys.values():
            producer.produce("t", b"during", key)
        assert producer.flush(PATIENCE_S) == 0
        assert read(3) == [b"during"] * 3
        assert host.brokers.coordinator(group) != 2
        consumer.commit(asynchronous=False)
    finally:
        consumer.close()

    assert set(keys) == {1, 2, 3}


def test_what_cannot_be_is_refused(host: RunningHost, odradek_host: RunningHost) -> None:
    with pytest.raises(ValueError, match=r"no broker 7: expected one of \[1, 2, 3\]"):
        host.brokers.close(7)
    with pytest.raises(ValueError, match="broker 1 is open"):
        host.brokers.open(1)
    host.brokers.close(1)
    with pytest.raises(ValueError, match="broker 1 is closed"):
        host.brokers.close(1)
    host.brokers.close(2)
    with pytest.raises(ValueError, match="broker 3 is the last one"):
        host.brokers.close(3)
    with pytest.raises(RuntimeError, match=r"start it with odradek.testing.host\(brokers=3\)"):
        odradek_host.brokers.close(1)
    with pytest.raises(ConfigError, match="one listener for all brokers"):
        odradek.testing.host(brokers=2, listeners="PLAINTEXT://:0,PLAINTEXT_B://:0").__enter__()
