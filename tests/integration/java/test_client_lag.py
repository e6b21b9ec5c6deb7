"""Equally slow consumers of four libraries, behind a gateway in front of Apache Kafka.

Each has a lag in records and in seconds on the page for Prometheus, without a setting in any client.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from contrib.capture.kafka_node import NEWEST, kafka_node
from contrib.capture.ports import free_port

from integration.java.console_tools import TOOLS
from integration.java.jvm import Jvm
from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from support.gateways import gateway_of
from support.slow_readers import LIBRARIES, READ, READERS, SIZE, TOPIC, LagPage, fill, settings

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
JAVA = "java"
PROPERTIES = f"client.id={JAVA}\nmax.partition.fetch.bytes={SIZE}\nmax.poll.records=1\n"


@contextlib.contextmanager
def with_java(classpath: str, bootstrap: str, folder: Path) -> Iterator[None]:
    """A Java consumer that gets no further when nobody reads what it prints."""
    config = folder / "consumer.properties"
    config.write_text(PROPERTIES)
    options = ("--topic", TOPIC, "--from-beginning", "--command-config", str(config))
    main = f"{TOOLS}.consumer.ConsoleConsumer"
    with Jvm(classpath).started(main, "--bootstrap-server", bootstrap, *options) as process:
        assert process.stdout is not None
        process.stdout.read(READ * (SIZE + 1))
        yield


def test_each_of_them_has_a_lag(java_classpath: str, tmp_path: Path) -> None:
    port = free_port()
    page = LagPage(port)
    with kafka_node(reporters="", kafka=NEWEST) as node, contextlib.ExitStack() as clients:
        bootstrap = f"127.0.0.1:{node.port}"
        with AdminClient(bootstrap, timeout_s=30) as admin:
            admin.create_topics([NewTopic(name=TOPIC, partitions=1)])
        stored_s = fill(bootstrap)
        behind = gateway_of(bootstrap, tmp_path / "data", "gateway.nodes=1", *settings(tmp_path, port))
        gateway = clients.enter_context(behind)
        clients.enter_context(with_java(java_classpath, gateway.bootstrap, tmp_path))
        for read in READERS.values():
            clients.enter_context(read(gateway.bootstrap))
        for client_id, library in {**LIBRARIES, JAVA: "apache-kafka-java"}.items():
            page.assert_behind(client_id, stored_s)
            assert page.library(client_id) == library
