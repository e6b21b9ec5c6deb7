"""Storage as real clients see it: deletion, moves between directories, compaction, a full disk."""

from __future__ import annotations

import resource
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.ports import free_port

from odradek.plugin.config import ConfigError
from support.hosts import LOOPBACK, ServeProcess, running_host
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka = pytest.importorskip("kafka")

TIMEOUT_S = 20
MOST_WAITING = 20_000
"""A fifth of the records that librdkafka buffers while the host is down; it refuses more."""


def create(bootstrap: str, topic: str, **config: str) -> None:
    admin = confluent_admin.AdminClient({"bootstrap.servers": bootstrap})
    new = confluent_admin.NewTopic(
        topic, 1, 1, config={key.replace("_", "."): value for key, value in config.items()}
    )
    admin.create_topics([new])[topic].result(TIMEOUT_S)


def records_of(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 50,
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    found = []
    while (message := consumer.poll(TIMEOUT_S)) is not None and not message.error():
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    assert message is not None
    return found


def test_records_are_deleted_by_two_clients(tmp_path: Path) -> None:
    with running_host(tmp_path / "data") as host:
        create(host.bootstrap, "a")
        producer = confluent_kafka.Producer({"bootstrap.servers": host.bootstrap})
        for number in range(10):
            producer.produce("a", b"%d" % number, partition=0)
        producer.flush(TIMEOUT_S)

        admin = confluent_admin.AdminClient({"bootstrap.servers": host.bootstrap})
        wanted = confluent_kafka.TopicPartition("a", 0, 4)
        [deleted] = admin.delete_records([wanted]).values()
        low_watermark = deleted.result(TIMEOUT_S).low_watermark
        other = kafka.KafkaAdminClient(bootstrap_servers=host.bootstrap)
        other.delete_records({kafka.TopicPartition("a", 0): 7})
        other.close()

        assert low_watermark == 4
        assert [offset for offset, _, _ in records_of(host.bootstrap, "a")] == [7, 8, 9]


def test_a_compacted_topic_keeps_the_last_value_of_each_key(tmp_path: Path) -> None:
    fast = ("log.cleaner.backoff.ms=50", "log.retention.check.interval.ms=50", "log.roll.ms=100")
    with running_host(tmp_path / "data", *fast) as host:
        create(host.bootstrap, "a", cleanup_policy="compact", min_cleanable_dirty_ratio="0.0")
        producer = confluent_kafka.Producer({"bootstrap.servers": host.bootstrap, "linger.ms": 0})

        def put(number: int) -> None:
            producer.produce("a", b"%d" % number, key=b"k%d" % (number % 3), partition=0)
            producer.flush(TIMEOUT_S)

        for number in range(30):
            put(number)
        time.sleep(0.15)
        put(30)

        def compacted() -> bool:
            return len(records_of(host.bootstrap, "a")) <= 4

        wait_until(compacted, "nothing was compacted")
        found = records_of(host.bootstrap, "a")
        assert [(offset, value) for offset, _, value in found][-3:] == [(28, b"28"), (29, b"29"), (30, b"30")]


class Writer:
    """Produces numbers until it is stopped, and records which were acknowledged."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 1}
        )
        self.topic = topic
        self.acknowledged: list[int] = []
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        number = 0
        while not self.stopped.is_set():
            self.producer.poll(0)
            if len(self.producer) >= MOST_WAITING:
                self.producer.poll(0.1)  # until one is acknowledged
                continue
            self.producer.produce(
                self.topic, b"%08d" % number + b"x" * 500, partition=0, on_delivery=self.delivered
            )
            number += 1
            if number % 50 == 0:
                time.sleep(0.005)
        self.producer.flush(TIMEOUT_S)

    def delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.append(int(message.value()[:8]))

    def stop(self) -> list[int]:
        self.stopped.set()
        self.thread.join(TIMEOUT_S * 2)
        return sorted(self.acknowledged)


def move(bootstrap: str, directory: Path) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        admin.alter_replica_log_dirs({kafka.TopicPartitionReplica("a", 0, 1): str(directory)})
    finally:
        admin.close()


@pytest.mark.ci
def test_a_partition_moves_while_it_is_written_and_the_host_is_killed(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    arguments = (
        "--set", f"listeners=PLAINTEXT://127.0.0.1:{free_port()}", "--set", f"data.dir={tmp_path / 'data'}",
        "--set", f"log.dirs={one},{two}",
    )  # fmt: skip
    host = ServeProcess(*arguments)
    try:
        create(host.bootstrap, "a")
        writer = Writer(host.bootstrap, "a")
        wait_until(lambda: len(writer.acknowledged) > 2_000, "nothing is written")
        for directory, pause_s in ((two, 0.0), (one, 0.01), (two, 0.03), (one, 0.2)):
            move(host.bootstrap, directory)
            time.sleep(pause_s)
            host.kill()
            host = ServeProcess(*arguments)
            wait_until((directory / "a-0").exists, "it has not arrived")
        acknowledged = writer.stop()

        found = [int((value or b"")[:8]) for _, _, value in records_of(host.bootstrap, "a")]

        assert found == list(range(len(found)))
        assert acknowledged == found
        wait_until(lambda: len([*one.glob("*a-0*"), *two.glob("*a-0*")]) == 1, "something is left behind")
    finally:
        if host.process.poll() is None:
            host.terminate()


@pytest.mark.ci
def test_a_full_disk_refuses_and_then_accepts_again(tmp_path: Path) -> None:
    host = ServeProcess("--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path}")
    try:
        create(host.bootstrap, "a", segment_bytes="1048576")
        _, hard = resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (400_000, hard))
        codes: list[str] = []
        acknowledged: list[bytes] = []

        def delivered(error: Any, message: Any) -> None:
            if error is not None:
                codes.append(error.name())
            else:
                acknowledged.append(message.value())

        impatient = {"bootstrap.servers": host.bootstrap, "acks": "all", "retries": 0, "linger.ms": 0}
        producer = confluent_kafka.Producer(impatient)
        for number in range(100):
            producer.produce("a", b"%03d" % number + b"x" * 9_997, partition=0, on_delivery=delivered)
            producer.flush(TIMEOUT_S)
        refused = len(codes)
        resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        producer.produce("a", b"after", partition=0, on_delivery=delivered)
        producer.flush(TIMEOUT_S)
        seen = [value for _, _, value in records_of(host.bootstrap, "a")]
        host.kill()
        host = ServeProcess("--set", f"listeners={LOOPBACK}", "--set", f"data.dir={tmp_path}")

        assert refused > 50
        assert set(codes) == {"KAFKA_STORAGE_ERROR"}
        assert acknowledged[-1] == b"after"
        assert seen == acknowledged
        assert [value for _, _, value in records_of(host.bootstrap, "a")] == acknowledged
    finally:
        if host.process.poll() is None:
            host.terminate()


def test_a_second_host_cannot_use_a_directory_of_the_first(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    with running_host(tmp_path / "data", f"log.dirs={shared}"):
        with pytest.raises(ConfigError, match=r"log\.dirs: .* is in use by another process"):
            running_host(tmp_path / "other", f"log.dirs={shared}").__enter__()

        assert not (tmp_path / "other" / "logs").exists()
