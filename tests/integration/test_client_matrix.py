"""librdkafka new and old, kafka-python, aiokafka, kcat, franz-go: every codec, groups, and pushes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.testing import RunningHost
from odradek.wire.compression import Codec
from odradek.wire.record_batch import record_batches
from support.hosts import ServeProcess, serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
PROGRAM = Path(__file__).with_name("librdkafka_program.py")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VALUES = [f"record {number} ".encode() * 10 for number in range(1_000)]
SUBSCRIPTION = ("subscriptions.all.metrics=org.apache.kafka.", "subscriptions.all.interval.ms=200")
"""A prefix: franz-go 1.22 does not know the ``*`` with which Kafka asks for all metrics."""


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[ServeProcess]:
    """A host that subscribes to all metrics and prints each push."""
    arguments = [argument for override in SUBSCRIPTION for argument in ("--set", override)]
    with serving(tmp_path / "data", "--plugin", "stdout", *arguments) as serve:
        yield serve


def ran(*command: str, stdin: str = "") -> str:
    """The standard output of a program that must end in status 0."""
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=150, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with the log of each partition, at any depth."""
    return tmp_path / "data"


def stored_codecs(logs: Path, topic: str) -> set[Codec]:
    """The codecs of the batches of a topic, as stored in the log."""
    found = set()
    for segment in logs.glob(f"**/{topic}-[0-9]*/*.log"):
        found |= {Codec(header.attributes & 7) for header, _ in record_batches(segment.read_bytes())}
    return found


def pushed_names(serve: ServeProcess, client_id: str, name: str) -> dict[str, Any]:
    """The first push of a client that contains the metric ``name``."""
    return serve.next_push(lambda row: row["context"]["client_id"] == client_id and name in row["names"])


def check_librdkafka(serve: ServeProcess, logs: Path, python: str, client_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(ran(python, str(PROGRAM), serve.bootstrap, client_id))
    assert found["acknowledged"] == 5_000
    assert found["classic"] == 5_000
    assert found["consumer"] == 5_000
    used = {codec: stored_codecs(logs, f"{client_id}-{codec}") for codec in CODECS}
    assert used == {codec: {Codec[codec.upper()]} for codec in CODECS}
    return pushed_names(serve, client_id, "org.apache.kafka.producer.connection.creation.total")


def test_librdkafka_compresses_joins_groups_and_pushes(serve: ServeProcess, logs: Path) -> None:
    pytest.importorskip("confluent_kafka")

    push = check_librdkafka(serve, logs, sys.executable, "newest")

    assert push["labels"]["client_software_name"] == "confluent-kafka-python"


def test_librdkafka_2_5_3_compresses_joins_groups_and_pushes(
    serve: ServeProcess, logs: Path, old_librdkafka: str
) -> None:
    push = check_librdkafka(serve, logs, old_librdkafka, "oldest")

    assert push["labels"]["client_software_version"].startswith("2.5.3")


def test_kafka_python_compresses_and_joins_a_group(serve: ServeProcess, logs: Path) -> None:
    kafka = pytest.importorskip("kafka")
    for codec in CODECS:
        compression = None if codec == "none" else codec
        producer = kafka.KafkaProducer(bootstrap_servers=serve.bootstrap, compression_type=compression)
        for value in VALUES:
            producer.send(f"python-{codec}", value, partition=0)
        producer.flush(20)
        producer.close()

    consumer = kafka.KafkaConsumer(
        *(f"python-{codec}" for codec in CODECS),
        bootstrap_servers=serve.bootstrap,
        group_id="python-readers",
        auto_offset_reset="earliest",
        consumer_timeout_ms=20_000,
    )
    read: dict[str, list[bytes]] = {codec: [] for codec in CODECS}
    for _ in range(len(VALUES) * len(CODECS)):
        record = next(consumer)
        read[record.topic.removeprefix("python-")].append(record.value)
    consumer.close()

    assert read == dict.fromkeys(CODECS, VALUES)
    used = {codec: stored_codecs(logs, f"python-{codec}") for codec in CODECS}
    assert used == {codec: {Codec[codec.upper()]} for codec in CODECS}


def test_aiokafka_compresses_and_joins_a_group(serve: ServeProcess, logs: Path) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def round_trip() -> dict[str, list[bytes]]:
        for codec in CODECS:
            compression = None if codec == "none" else codec
            async with aiokafka.AIOKafkaProducer(
                bootstrap_servers=serve.bootstrap, enable_idempotence=True, compression_type=compression
            ) as producer:
                sent = [await producer.send(f"aio-{codec}", value, partition=0) for value in VALUES]
                await asyncio.gather(*sent)
        read: dict[str, list[bytes]] = {codec: [] for codec in CODECS}
        async with aiokafka.AIOKafkaConsumer(
            *(f"aio-{codec}" for codec in CODECS),
            bootstrap_servers=serve.bootstrap,
            group_id="aio-readers",
            auto_offset_reset="earliest",
        ) as consumer:
            for _ in range(len(VALUES) * len(CODECS)):
                record = await asyncio.wait_for(consumer.getone(), 20)
                read[record.topic.removeprefix("aio-")].append(record.value)
        return read

    read = asyncio.run(round_trip())

    assert read == dict.fromkeys(CODECS, VALUES)
    used = {codec: stored_codecs(logs, f"aio-{codec}") for codec in CODECS}
    assert used == {codec: {Codec[codec.upper()]} for codec in CODECS}


def test_kcat_lists_produces_and_consumes(serve: ServeProcess, logs: Path, kcat: str) -> None:
    lines = [f"key{number}:value{number}" for number in range(1_000)]
    broker = ("-b", serve.bootstrap)
    for codec in CODECS:
        text = "\n".join(lines)
        ran(kcat, *broker, "-P", "-t", f"kcat-{codec}", "-p", "0", "-K:", "-z", codec, stdin=text)

    listed = json.loads(ran(kcat, *broker, "-L", "-J"))
    format_ = ("-f", "%k:%s\\n", "-e", "-q")
    by_codec = {
        codec: ran(kcat, *broker, "-C", "-t", f"kcat-{codec}", "-o", "beginning", *format_)
        for codec in CODECS
    }
    by_group = ran(
        kcat, *broker, "-G", "kcat-readers", "-X", "auto.offset.reset=earliest", *format_, "kcat-none"
    )

    names = {topic["topic"]: len(topic["partitions"]) for topic in listed["topics"]}
    assert names | {f"kcat-{codec}": 1 for codec in CODECS} == names
    assert {codec: text.splitlines() for codec, text in by_codec.items()} == dict.fromkeys(CODECS, lines)
    assert by_group.splitlines() == lines
    assert stored_codecs(logs, "kcat-snappy") == {Codec.SNAPPY}


def test_kcat_finds_an_offset_by_timestamp(serve: ServeProcess, kcat: str) -> None:
    broker = ("-b", serve.bootstrap)
    ran(kcat, *broker, "-P", "-t", "timed", stdin="one\ntwo\n")

    earliest = ran(kcat, *broker, "-Q", "-t", "timed:0:1")
    latest = ran(kcat, *broker, "-Q", "-t", "timed:0:-1")

    assert (earliest, latest) == ("timed [0] offset 0\n", "timed [0] offset 2\n")


def test_franz_go_produces_reads_with_a_group_and_pushes(
    serve: ServeProcess, logs: Path, franz_go: str
) -> None:
    printed = ran(franz_go, serve.bootstrap, "franz", "1000", "a-gopher")

    assert printed.splitlines() == ["produced=5000", "read=5000"]
    assert stored_codecs(logs, "franz") == set(Codec)
    push = serve.next_push(lambda row: row["context"]["client_id"] == "a-gopher" and row["metrics"])
    assert push["labels"]["client_software_name"] == "kgo"


def test_franz_go_behaves_as_the_conformance_page_says(
    odradek_host: RunningHost, franz_go_telemetry: str
) -> None:
    host = odradek_host
    host.subscribe("org.apache.kafka.", interval_ms=1_000)
    host.topics.create("reported")
    command = [franz_go_telemetry, host.bootstrap, "reported", "a-gopher"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        host.telemetry.wait_for(client_id="a-gopher", timeout_s=20)
        host.fault("PushTelemetry", error="UNSUPPORTED_COMPRESSION_TYPE").wait(20)
        host.fault("PushTelemetry", error="UNKNOWN_SUBSCRIPTION_ID").wait(20)
        refused = host.telemetry.wait_for_push(error="UNKNOWN_SUBSCRIPTION_ID")
        host.telemetry.wait_for(client_id="a-gopher", after=refused, timeout_s=20)
        process.communicate("", timeout=60)

    report = host.telemetry.conformance("a-gopher")

    verdicts = {row.rule: row.verdict for row in report.rules}
    assert (verdicts["UNSUPPORTED_COMPRESSION_TYPE"], verdicts["UNKNOWN_SUBSCRIPTION_ID"]) == ("wrong", "ok")
    assert not any(row.problems for row in report.metrics)
