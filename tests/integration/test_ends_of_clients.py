"""Clients that close, and clients that are killed, at a host and through a gateway: who has left."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from odradek.plugin import TelemetryRecord
from odradek.telemetry.goodbyes import CHECK_MS
from odradek.topic import decode_record
from support.child_process import same_imports
from support.gateways import gateway_of
from support.hosts import running_host, serving

pytestmark = [pytest.mark.ci, pytest.mark.timeout(120)]

WINDOW_MS = 300
WINDOW = ("subscriptions.all.metrics=*", f"subscriptions.all.interval.ms={WINDOW_MS}")
CLOSES, KILLED = "closes", "killed"
LEFT = {
    ("librdkafka_producer", CLOSES): True,
    ("librdkafka_consumer", CLOSES): True,
    ("kafka_python_producer", CLOSES): True,
    ("kafka_python_consumer", CLOSES): True,
    ("librdkafka_producer", KILLED): True,  # nothing was unanswered: nobody can tell
    ("librdkafka_consumer", KILLED): False,
    ("kafka_python_producer", KILLED): True,
    ("kafka_python_consumer", KILLED): False,
}


@contextlib.contextmanager
def at_gateway(directory: Path, upstream_directory: Path) -> Iterator[str]:
    with (
        running_host(upstream_directory, "node.id=1") as upstream,
        gateway_of(upstream.bootstrap, directory, *WINDOW) as gateway,
    ):
        yield gateway.bootstrap


@contextlib.contextmanager
def at_host(directory: Path, _: Path) -> Iterator[str]:
    settings = "telemetry.observe=silent", *WINDOW
    with serving(directory, *(each for value in settings for each in ("--set", value))) as host:
        yield host.bootstrap


@pytest.fixture(scope="module", params=[at_host, at_gateway])
def last(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, TelemetryRecord]:
    """The last record of each client, from the data directory of a program that has stopped."""
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("kafka")
    directory = tmp_path_factory.mktemp("here")
    with request.param(directory, tmp_path_factory.mktemp("upstream")) as bootstrap, ExitStack() as ending:
        clients = [
            (end, ending.enter_context(running_client(kind, bootstrap, f"{kind} {end}")))
            for kind, end in LEFT
        ]
        for end, client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "works\n"
            client.kill() if end == KILLED else client.communicate("\n", 30)
        time.sleep(2 * CHECK_MS / 1_000)
    return read_back(directory)


@contextlib.contextmanager
def running_client(kind: str, bootstrap: str, client_id: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "support.ending_clients", kind, bootstrap, client_id]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=same_imports(), stdin=pipe, stdout=pipe, text=True) as client:
        try:
            yield client
        finally:
            client.kill()


def read_back(directory: Path) -> dict[str, TelemetryRecord]:
    """The last record of each client id in the telemetry topic."""
    import kafka

    with running_host(directory) as host:
        consumer = kafka.KafkaConsumer(bootstrap_servers=host.bootstrap, auto_offset_reset="earliest")
        partitions = consumer.partitions_for_topic("__client_telemetry")
        topic = [kafka.TopicPartition("__client_telemetry", index) for index in partitions]
        consumer.assign(topic)
        ends: dict[Any, int] = consumer.end_offsets(topic)
        found = {}
        while any(consumer.position(each) < ends[each] for each in topic):
            for records in consumer.poll(10_000).values():
                for record in records:
                    read = decode_record(record.key, record.value, record.headers)
                    found[read.context.client_id or ""] = read
        consumer.close()
    return found


@pytest.mark.parametrize(("kind", "end"), LEFT)
def test_a_client_has_left_unless_its_group_still_has_it(
    last: dict[str, TelemetryRecord], kind: str, end: str
) -> None:
    assert last[f"{kind} {end}"].payload.terminating is LEFT[kind, end]
