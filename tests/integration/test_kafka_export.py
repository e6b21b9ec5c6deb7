"""The Kafka export against hosts: the exported records, and an unavailable target."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic
from contrib.capture.ports import free_port
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.plugin import Forwarder, Reject, Retry, TelemetryRecord
from odradek.topic import decode_record
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek_kafka.client_options import DEFAULTS
from support.hosts import EVERYTHING, running_host, serving
from support.kafka_export import (
    PATIENCE_S,
    TOPIC,
    attempt,
    deliver,
    forwarder_of,
    metrics_of,
    read,
    record_of,
)
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

GOODBYES = 3
"""Clients, one of which sends a terminating push: librdkafka may close its connection first."""


def names_in(data: bytes) -> list[str]:
    return [
        metric.name
        for entry in MetricsData.FromString(data).resource_metrics
        for scope in entry.scope_metrics
        for metric in scope.metrics
    ]


def topics_of(bootstrap: str) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": bootstrap, "enable.metrics.push": False})
    return dict(admin.list_topics(timeout=PATIENCE_S).topics)


def policy_of(bootstrap: str, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": bootstrap, "enable.metrics.push": False})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    (future,) = admin.describe_configs([resource]).values()
    return str(future.result(PATIENCE_S)["cleanup.policy"].value)


def test_a_push_arrives_as_the_record_of_a_telemetry_topic(tmp_path: Path) -> None:
    batch = [record_of(number) for number in range(50)]

    with running_host(tmp_path) as host:
        errors = deliver(host.bootstrap, batch)
        messages = read(host.bootstrap, TOPIC, len(batch))

    found = [decode_record(*parts(message)) for message in messages]
    assert errors == [None]
    assert [item.payload.data for item in found] == [record.payload.data for record in batch]
    assert [message.timestamp()[1] for message in messages] == [item.context.received_ms for item in found]
    assert {message.key() for message in messages} == {b"AQEBAQEBAQEBAQEBAQEBAQ"}
    assert found[0].context.connection.client_software_name == "librdkafka"
    assert found[0].context.client_id == "client-1"


def test_json_is_exported_as_json(tmp_path: Path) -> None:
    with running_host(tmp_path) as host:
        deliver(host.bootstrap, [record_of(7)], encoding="otlp_json", key="client_id")
        (message,) = read(host.bootstrap, TOPIC, 1)

    (entry,) = json.loads(message.value())["resourceMetrics"]
    (metric,) = entry["scopeMetrics"][0]["metrics"]
    assert metric == {
        "name": "org.apache.kafka.producer.metric.7",
        "gauge": {"dataPoints": [{"asInt": "7"}]},
    }
    assert message.key() == b"client-1"


def test_instances_keep_their_order_over_partitions(tmp_path: Path) -> None:
    batches = [
        [record_of(number, instance=number % 5 + 1) for number in range(200)][at::4] for at in range(4)
    ]

    with running_host(tmp_path) as host:
        deliver(host.bootstrap, *batches, **{"topic.partitions": 3})
        messages = read(host.bootstrap, TOPIC, 200)
        partitions = topics_of(host.bootstrap)[TOPIC].partitions

    sent = [record for batch in batches for record in batch]
    for instance in range(1, 6):
        wanted = [item.payload.data for item in sent if item.context.client_id == f"client-{instance}"]
        key = next(m.key() for m in messages if m.value() == wanted[0])
        assert [message.value() for message in messages if message.key() == key] == wanted
    assert len(partitions) == 3
    assert len({message.partition() for message in messages}) > 1


def test_each_metric_family_can_have_its_topic(tmp_path: Path) -> None:
    batch = [
        record_of(1),
        record_of(2, data=metrics_of("org.apache.kafka.consumer.lag", 2)),
        record_of(3, data=metrics_of("mine", 3)),
    ]

    with running_host(tmp_path) as host:
        errors = deliver(host.bootstrap, batch, topic="telemetry.{family}")
        names = {name for name in topics_of(host.bootstrap) if name.startswith("telemetry")}
        (message,) = read(host.bootstrap, "telemetry.consumer", 1)

    assert errors == [None]
    assert names == {"telemetry.producer", "telemetry.consumer", "telemetry.other"}
    assert message.value() == batch[1].payload.data


def test_a_silent_client_and_a_terminated_one_can_be_distinguished(tmp_path: Path) -> None:
    batch = [record_of(1, instance=1), record_of(2, instance=2, data=b"")]
    later = [record_of(3, instance=1, data=b"", terminating=True)]

    with running_host(tmp_path) as host:
        errors = deliver(host.bootstrap, batch, later, **{"liveness.topic": "alive"})
        messages = read(host.bootstrap, "alive", 3)
        policy = policy_of(host.bootstrap, "alive")

    rows = {message.key(): json.loads(message.value()) for message in messages}
    found = {row["client_id"]: (row["last_seen_ms"], row["terminating"]) for row in rows.values()}
    assert errors == [None, None]
    assert policy == "compact"
    assert found == {"client-1": (1_760_000_000_003, True), "client-2": (1_760_000_000_002, False)}


def test_an_existing_topic_is_not_changed(tmp_path: Path) -> None:
    with running_host(tmp_path) as host:
        admin = AdminClient({"bootstrap.servers": host.bootstrap, "enable.metrics.push": False})
        admin.create_topics([NewTopic("alive", 1, 1, config={"cleanup.policy": "compact,delete"})])[
            "alive"
        ].result(PATIENCE_S)

        errors = deliver(host.bootstrap, [record_of(1)], **{"liveness.topic": "alive"})

        assert errors == [None]
        assert policy_of(host.bootstrap, "alive") == "compact,delete"


def test_a_record_that_is_too_large_is_found_among_others(tmp_path: Path) -> None:
    large = metrics_of("".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(40_000)), 1)
    batch = [record_of(1), record_of(2, data=large), record_of(3)]

    with running_host(tmp_path) as host:
        admin = AdminClient({"bootstrap.servers": host.bootstrap, "enable.metrics.push": False})
        small = NewTopic(TOPIC, 1, 1, config={"max.message.bytes": "10000"})
        admin.create_topics([small])[TOPIC].result(PATIENCE_S)

        (error,) = deliver(host.bootstrap, batch)
        messages = read(host.bootstrap, TOPIC, 2)

    assert isinstance(error, Reject)
    assert error.records == [batch[1]]
    assert error.delivered == [batch[0], batch[2]]
    assert [message.value() for message in messages] == [batch[0].payload.data, batch[2].payload.data]


def test_a_topic_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    with running_host(tmp_path) as host:
        (error,) = deliver(host.bootstrap, [record_of(1)], **{"topic.replication.factor": 3})

    assert isinstance(error, Retry)
    assert "topic client_telemetry cannot be created: INVALID_REPLICATION_FACTOR" in str(error)


def test_an_unreachable_target_is_a_retry_with_a_reason() -> None:
    (error,) = deliver(f"127.0.0.1:{free_port()}", [record_of(1)], **{"deliver.timeout.ms": 1_500})

    assert isinstance(error, Retry)
    assert "Connection refused" in str(error) or "brokers are down" in str(error)


@pytest.mark.parametrize("create", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_pushes_wait_for_a_target_that_is_down_at_first_and_again_later(tmp_path: Path, create: bool) -> None:
    port = free_port()
    listener = f"listeners=PLAINTEXT://127.0.0.1:{port}"
    batches = [[record_of(number * 10 + step) for step in range(10)] for number in range(6)]

    async def until_delivered(
        forwarder: Forwarder, batch: list[TelemetryRecord], refused: asyncio.Event
    ) -> None:
        left = list(batch)
        while (error := await attempt(forwarder, left)) is not None:
            assert isinstance(error, Retry), error
            left = [record for record in left if record not in error.delivered]
            refused.set()

    async def run() -> None:
        table = {"deliver.timeout.ms": 600, "topic.create": create}
        forwarder = forwarder_of(f"127.0.0.1:{port}", **table)
        await forwarder.start()
        try:
            for start in (0, 3):
                refused = asyncio.Event()
                waiting = asyncio.ensure_future(until_delivered(forwarder, batches[start], refused))
                await refused.wait()
                with running_host_in_thread() as enter:
                    await asyncio.to_thread(enter)
                    await waiting
                    for batch in batches[start + 1 : start + 3]:
                        await until_delivered(forwarder, batch, refused)
        finally:
            await forwarder.close()

    @contextmanager
    def running_host_in_thread() -> Iterator[Callable[[], object]]:
        host = running_host(tmp_path, listener)
        try:
            yield host.__enter__
        finally:
            host.__exit__(None, None, None)

    asyncio.run(run())
    found: set[str] = set()

    def is_new(message: Message) -> bool:
        """A record whose report came too late was sent again."""
        before = len(found)
        found.update(names_in(message.value() or b""))
        return len(found) > before

    with running_host(tmp_path, listener) as host:
        read(host.bootstrap, TOPIC, 60, is_new)

    assert found == {f"org.apache.kafka.producer.metric.{number}" for number in range(60)}


def test_a_host_that_exports_to_itself_does_not_loop(tmp_path: Path) -> None:
    port = free_port()
    settings = [
        f"listeners=PLAINTEXT://127.0.0.1:{port}",
        f"plugins.kafka.bootstrap.servers=127.0.0.1:{port}",
        "plugins.kafka.liveness.topic=alive",
        "plugins.kafka.batch.max.age.ms=50",
        "telemetry.linger.ms=0",  # librdkafka sends a terminating push only if no push waits for its answer
        *EVERYTHING,
    ]
    arguments = [part for setting in settings for part in ("--set", setting)]

    with serving(tmp_path / "data", *arguments, "--plugin", "kafka") as serve:
        for _ in range(GOODBYES):
            pushing = Producer({"bootstrap.servers": serve.bootstrap, "client.id": "pushing"})
            pushing.poll(1.5)
            pushing.close()
        gone = read(serve.bootstrap, "alive", 1, lambda message: json.loads(message.value())["terminating"])
        messages = read(serve.bootstrap, TOPIC, 2)
        clients = {json.loads(m.value())["client_id"] for m in read(serve.bootstrap, "alive", 2)}
        status = serve.terminate()

    assert json.loads(gone[0].value())["client_id"] == "pushing"
    assert {dict(message.headers())["client_id"] for message in messages} == {b"pushing"}
    assert clients == {"pushing"}
    assert status == 0


def test_an_unknown_client_option_stops_the_start_and_is_named(tmp_path: Path) -> None:
    settings = [
        f"data.dir={tmp_path}",
        "plugins.kafka.bootstrap.servers=127.0.0.1:1",
        "plugins.kafka.client.lingr.ms=5",
    ]
    command = [sys.executable, "-m", "odradek", "serve"]

    done = subprocess.run(
        [*command, *(part for setting in settings for part in ("--set", setting))],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert done.returncode == 2
    assert "plugins.kafka.client.lingr.ms: No such configuration property" in done.stderr


def test_a_throttling_target_is_waited_for(tmp_path: Path) -> None:
    batches = [[record_of(number, data=random.Random(number).randbytes(5_000))] for number in range(8)]
    quota = RequestEntryData(
        entity=[EntityData(entity_type="client-id", entity_name="odradek-kafka")],
        ops=[OpData(key="producer_byte_rate", value=3_400.0)],
    )

    with running_host(tmp_path) as host:
        with WireClient(host.address) as client:
            client.introduce()
            answer = client.send(AlterClientQuotasRequest(entries=[quota]))
        begin_s = time.monotonic()
        errors = deliver(host.bootstrap, *batches)
        took_s = time.monotonic() - begin_s
        messages = read(host.bootstrap, TOPIC, len(batches))

    assert [entry.error_code for entry in answer.entries] == [0]
    assert errors == [None] * len(batches)
    assert [message.value() for message in messages] == [batch[0].payload.data for batch in batches]
    assert took_s > 0.5


def test_a_cluster_that_stands_still_costs_no_processor_time(tmp_path: Path) -> None:
    with serving(tmp_path) as serve:
        producer = Producer({**DEFAULTS, "bootstrap.servers": serve.bootstrap})
        producer.produce(TOPIC, b"first")
        assert producer.flush(PATIENCE_S) == 0
        serve.process.send_signal(signal.SIGSTOP)
        try:
            before_s = time.process_time()
            for _ in range(100):
                producer.produce(TOPIC, bytes(2_000))
                producer.poll(0.01)
            used_s = time.process_time() - before_s
        finally:
            serve.process.send_signal(signal.SIGCONT)
        assert producer.flush(PATIENCE_S) == 0
        producer.close()

    assert used_s < 0.5


@pytest.mark.java
@pytest.mark.timeout(180)
def test_apache_kafka_accepts_every_record() -> None:
    from contrib.capture.kafka_node import kafka_node

    batch = [record_of(1), record_of(2, instance=2, data=b"")]
    table: dict[str, object] = {"topic": "telemetry.{family}", "liveness.topic": "alive"}

    with kafka_node() as node:
        bootstrap = f"127.0.0.1:{node.port}"
        errors = deliver(bootstrap, batch, **table)
        again = deliver(bootstrap, [record_of(3)], encoding="otlp_json", **table)
        messages = read(bootstrap, "telemetry.producer", 2)
        alive = read(bootstrap, "alive", 3)
        policy = policy_of(bootstrap, "alive")
        (unmade,) = deliver(bootstrap, [record_of(4)], topic="more", **{"topic.replication.factor": 3})

    assert (errors, again) == ([None], [None])
    assert decode_record(*parts(messages[0])).payload.data == batch[0].payload.data
    assert json.loads(messages[1].value())["resourceMetrics"]
    assert len({message.key() for message in alive}) == 2
    assert policy == "compact"
    assert "INVALID_REPLICATION_FACTOR" in str(unmade)


def parts(message: Message) -> tuple[Any, Any, Any]:
    return message.key(), message.value(), message.headers()
