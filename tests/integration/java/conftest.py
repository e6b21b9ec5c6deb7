"""Fixtures: a Java class path and a host that prints pushes."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from contrib.capture.kafka_node import NEWEST

from integration.java.balanced_gateways import BalancedGateways, balanced_gateways
from integration.java.console_tools import ConsoleTools
from integration.java.host_process import HostProcess, host_process
from integration.java.jvm import SERVER, Clients, Jvm, built_classpath
from integration.java.kafka_cluster import ADDRESS, NODE_RANGES, KafkaCluster, kafka_cluster
from integration.java.main_server import main_server

EVERYTHING = (
    "plugins.stdout.enabled=true",
    "subscriptions.all.metrics=org.apache.kafka.",
    "subscriptions.all.interval.ms=200",
)
TOOLS_VERSION = "4.3.1"
"""The version of the newest console tools, and of Kafka in contrib/java/pom.xml."""


@pytest.fixture(scope="session")
def java_classpath() -> str:
    """Kafka's artifacts and the compiled sources of contrib/java, built once and kept in the user's cache.

    The version is that of the newest console tools.
    """
    return built_classpath()


@pytest.fixture(scope="session")
def java_classpath_4_4() -> str:
    """The same with the server and the clients of Kafka's newest version."""
    return built_classpath("--kafka", NEWEST)


@pytest.fixture(scope="session")
def jvm(java_classpath: str) -> Iterator[Jvm]:
    """One JVM for the tools of all tests."""
    with main_server(Jvm(java_classpath).command(SERVER)) as server:
        yield Jvm(java_classpath, server)


@pytest.fixture(scope="session")
def newest_jvm(java_classpath_4_4: str) -> Iterator[Jvm]:
    """One JVM for the clients of Kafka's newest version, which has no console tools."""
    with main_server(Jvm(java_classpath_4_4).command(SERVER)) as server:
        yield Jvm(java_classpath_4_4, server)


@pytest.fixture(scope="module", params=[TOOLS_VERSION, NEWEST])
def clients(request: pytest.FixtureRequest) -> Clients:
    """The Java clients of each version."""
    jvm: Jvm = request.getfixturevalue("newest_jvm" if request.param == NEWEST else "jvm")
    return Clients(request.param, jvm)


@pytest.fixture(scope="module")
def host(java_classpath: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    """One host for all tests of a file, which use different names. Not started without Java."""
    with host_process(tmp_path_factory.mktemp("java-host")) as running:
        yield running


@pytest.fixture(scope="module")
def tools(request: pytest.FixtureRequest, jvm: Jvm) -> ConsoleTools:
    """The console tools against the host. With ``ODRADEK_TEST_PEER=host:port`` they run against that broker,
    to verify expectations on Apache Kafka.
    """
    peer = os.environ.get("ODRADEK_TEST_PEER")
    if peer:
        return ConsoleTools(jvm, peer)
    host: HostProcess = request.getfixturevalue("host")
    return ConsoleTools(jvm, host.bootstrap)


@pytest.fixture(scope="session")
def kafka_nodes(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    """Three nodes of Apache Kafka. A test that stops one starts it again."""
    with kafka_cluster(jvm, tmp_path_factory.mktemp("kafka-nodes")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def gateways(kafka_nodes: KafkaCluster) -> Iterator[BalancedGateways]:
    """Two gateways in front of them, which ask all clients for all metrics and print pushes.

    At the end, no client may have been sent an address of a node.
    """
    with balanced_gateways(
        kafka_nodes.folder, kafka_nodes.bootstrap, NODE_RANGES, ADDRESS, *EVERYTHING
    ) as running:
        yield running
        faults = running.faults
        seen = running.stopped()
    assert [each.secrets for each in seen] == [0] * len(seen)
    assert faults == ""
