"""Two hosts, two forwarders and three Apache Kafka nodes under load, each of them gone for a while.

Needs Kafka itself: coordinators and leaders move, and groups are those of another broker. With
``ODRADEK_OUTAGE_S=600`` the outages last ten minutes; without it, until each process has noticed them.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Message
from contrib.capture.ports import free_range

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from integration.java.kafka_cluster import NODES, KafkaCluster
from odradek.topic.telemetry_topic import ORIGIN_OFFSET, ORIGIN_PARTITION, ORIGIN_TOPIC_ID
from support.accounts import assert_served_accounts_balance
from support.fleet_load import PATIENCE_S, Load
from support.forwarding import FLEET, ForwardProcess
from support.hosts import ServeProcess, serving
from support.kafka_export import read
from support.otlp_collector import collecting
from support.spooling import name_of
from support.waiting import wait_until

OUTAGE_S = float(os.environ.get("ODRADEK_OUTAGE_S", "1"))
BACKLOG_S = PATIENCE_S + OUTAGE_S
"""For what has gathered in an outage."""
pytestmark = [pytest.mark.java, pytest.mark.timeout(600 + 5 * OUTAGE_S)]
PARTITIONS = 6
ORIGIN = (ORIGIN_TOPIC_ID, ORIGIN_PARTITION, ORIGIN_OFFSET)
BATCH = 40
"""Default of ``batch.max.records``: the most that a killed process has in flight."""
EXPORT = (
    "subscriptions.all.metrics=*",
    "subscriptions.all.interval.ms=500",
    "telemetry.lag=none",
    f"plugins.kafka.topic={FLEET}",
    "plugins.kafka.batch.max.age.ms=50",
    "plugins.kafka.deliver.timeout.ms=10000",
    "plugins.kafka.client.reconnect.backoff.max.ms=200",
)


class Hosts:
    """Hosts that export to the topic; each is told the address of the cluster and nothing else."""

    def __init__(self, folder: Path, cluster: str) -> None:
        self.folder = folder
        self.settings = (*EXPORT, f"plugins.kafka.bootstrap.servers={cluster}")
        self.port = free_range(2)

    def start(self, number: int) -> AbstractContextManager[ServeProcess]:
        listener = f"metrics.listener=http://127.0.0.1:{self.port + number}"
        settings = (*self.settings, f"node.id={number + 1}", listener)
        return serving(self.folder / str(number), *(part for each in settings for part in ("--set", each)))

    def await_exported(self, number: int) -> None:
        """Wait until a host has nothing left to export; its accounts balance all the time."""
        url = f"http://127.0.0.1:{self.port + number}/metrics"
        wait_until(
            lambda: assert_served_accounts_balance(url)["forwarder_queued", "kafka"] == 0, url, BACKLOG_S
        )


@contextmanager
def outage(*processes: ServeProcess) -> Iterator[None]:
    """The block takes the destination away. Then wait `OUTAGE_S`, and until each process has logged it."""

    def logged(process: ServeProcess) -> int:
        return sum("destination is down" in line for line in list(process.errors))

    before = [logged(each) for each in processes]
    yield
    time.sleep(OUTAGE_S)
    wait_until(
        lambda: all(logged(each) > then for each, then in zip(processes, before, strict=True)),
        lambda: [each.errors[-5:] for each in processes],
        PATIENCE_S,
    )


def test_no_accepted_push_is_missing_whatever_was_gone(
    jvm: Jvm, kafka_nodes: KafkaCluster, tmp_path: Path
) -> None:
    bootstrap = kafka_nodes.bootstrap
    tools = ConsoleTools(jvm, bootstrap)
    tools.create_topic(FLEET, PARTITIONS, "--replication-factor", "3")
    properties = tmp_path / "forward.properties"
    properties.write_text("session.timeout.ms=6000\nheartbeat.interval.ms=300\n")
    hosts = Hosts(tmp_path, bootstrap)
    with ExitStack() as stack:
        collector = stack.enter_context(collecting())
        arguments = (
            *("--bootstrap-server", bootstrap, "--topic", FLEET, "--command-config", str(properties)),
            *("--set", "metrics.listener=http://127.0.0.1:0"),
            *("--set", f"plugins.otlp.endpoint={collector.url}/v1/metrics"),
            *("--set", "plugins.otlp.protocol=http/protobuf", "--set", "plugins.otlp.batch.max.age.ms=50"),
        )
        one, two = (stack.enter_context(ForwardProcess(*arguments)) for _ in range(2))
        first, second = (stack.enter_context(hosts.start(number)) for number in range(2))
        load = stack.enter_context(Load(first.bootstrap, second.bootstrap, seconds=600 + 5 * OUTAGE_S))

        def all_arrive() -> None:
            accepted = set(load.accepted)
            wait_until(
                lambda: not collector.missing(accepted), lambda: len(collector.missing(accepted)), BACKLOG_S
            )

        load.some()
        load.at(first.bootstrap)
        second.kill()
        one.kill()
        kafka_nodes.kill(2)
        load.some()
        kafka_nodes.start(2)
        second = stack.enter_context(hosts.start(1))
        load.move(first.bootstrap, second.bootstrap)
        kafka_nodes.wait(2)
        load.some()
        all_arrive()

        with outage(first, second):
            for node in reversed(NODES):
                kafka_nodes.kill(node)
        load.some()
        for node in NODES:
            kafka_nodes.start(node)
        kafka_nodes.wait(*NODES)
        load.some()
        all_arrive()

        with outage(two):
            collector.down()
        load.some()
        collector.up()
        load.stop()
        all_arrive()

        for number in range(2):
            hosts.await_exported(number)
        wait_until(
            lambda: assert_served_accounts_balance(two.metrics_url)["forwarder_queued", "otlp"] == 0, "lag"
        )
        rows = wait_until(lambda: without_lag(tools), "a partition has a lag", BACKLOG_S)
        assert two.terminate() == 0

    stored = Counter(map(pushed, read(bootstrap, FLEET, sum(int(row[4]) for row in rows))))
    names = {name for name, _ in stored}
    repeated = stored.total() - len(stored)
    print(f"{len(load.accepted)} accepted, {repeated} repeated in the topic, {collector.duplicates} after it")
    assert load.fleet.tally.refused == {}
    assert load.accepted <= names
    assert len(names) == len(stored), "a repeated record has another origin"
    # A killed host or forwarder repeats its batch, and so does each host whose acknowledgments were lost.
    assert repeated <= 3 * BATCH
    assert collector.duplicates <= repeated + 2 * BATCH


def without_lag(tools: ConsoleTools) -> list[list[str]]:
    """The rows of the forwarders' group in Kafka's tool; none while a partition has a lag.

    A forwarder commits shortly after the destination has the records.
    """
    shown = tools.succeed("kafka-consumer-groups", "--describe", "--group", "odradek.forward.otlp")
    rows = [line.split() for line in shown if f" {FLEET} " in line]
    return rows if [row[5] for row in rows] == ["0"] * PARTITIONS else []


def pushed(message: Message) -> tuple[str, tuple[object, ...]]:
    """The name of a push, and where its host stored it."""
    headers = dict(message.headers() or ())
    return name_of(message.value() or b""), tuple(headers[key] for key in ORIGIN)
