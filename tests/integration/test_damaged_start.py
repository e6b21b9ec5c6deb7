"""``odradek serve`` on damaged files: it deletes nothing, and says in one line what is wrong."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from support.hosts import LOOPBACK, running_host, serving

pytestmark = pytest.mark.ci

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")

TIMEOUT_S = 20
TOPICS = {"orders": 3, "users": 1}
SPOOL = "__client_telemetry-0"


def produce(bootstrap: str, topic: str, *values: bytes) -> None:
    """Produce idempotently, so that the broker assigns a producer id."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    failures: list[object] = []
    for value in values:
        producer.produce(topic, value, partition=0, on_delivery=lambda error, _: failures.append(error))
    producer.flush(TIMEOUT_S)
    assert failures == [None] * len(values)


def values_of(bootstrap: str, topic: str) -> list[bytes]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "g", "enable.partition.eof": True}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)])
    found = []
    while (message := consumer.poll(TIMEOUT_S)) is not None and not message.error():
        found.append(message.value())
    consumer.close()
    return found


def partitions_of(bootstrap: str) -> dict[str, int]:
    admin = confluent_admin.AdminClient({"bootstrap.servers": bootstrap})
    listed = admin.list_topics(timeout=TIMEOUT_S).topics
    return {name: len(topic.partitions) for name, topic in listed.items() if name in TOPICS}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a host that has two topics with records."""
    with running_host(tmp_path) as host:
        admin = confluent_admin.AdminClient({"bootstrap.servers": host.bootstrap})
        new = [confluent_admin.NewTopic(name, count, 1) for name, count in TOPICS.items()]
        for created in admin.create_topics(new).values():
            created.result(TIMEOUT_S)
        for topic in TOPICS:
            produce(host.bootstrap, topic, b"one", b"two")
    return tmp_path


def refused(data: Path, *arguments: str) -> str:
    """The only line of a host that does not start."""
    command = [sys.executable, "-m", "odradek", "serve", "--set", f"listeners={LOOPBACK}"]
    result = subprocess.run(
        [*command, "--set", f"data.dir={data}", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (result.returncode, result.stdout) == (2, ""), result.stderr
    [line] = result.stderr.splitlines()
    return line


def flip_a_bit(file: Path) -> None:
    damaged = bytearray(file.read_bytes())
    damaged[-3] ^= 0x01
    file.write_bytes(damaged)


def spoil(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-3] + b"\xff\xfe\n")


@pytest.mark.parametrize("damage", [flip_a_bit, spoil])
def test_a_partition_with_a_damaged_topic_id_is_set_aside_and_can_be_brought_back(
    data: Path, damage: Callable[[Path], None]
) -> None:
    folder = data / "logs" / "orders-0"
    damage(folder / "partition.metadata")

    with serving(data) as serve:
        assert values_of(serve.bootstrap, "orders") == []
        assert values_of(serve.bootstrap, "users") == [b"one", b"two"]
    [stray] = (data / "logs").glob("*-stray")
    errors = [line for line in serve.errors if " ERROR " in line]
    assert len(errors) == 1
    assert f"set_aside={stray}" in errors[0]
    assert "way_back=" in errors[0]
    assert "Traceback" not in "\n".join(serve.errors)

    folder.rename(data / "the empty one")
    stray.rename(folder)
    (folder / "partition.metadata").unlink()
    with running_host(data) as host:
        assert values_of(host.bootstrap, "orders") == [b"one", b"two"]


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(b"no database" * 1000),
        lambda file: file.write_bytes(file.read_bytes()[:6000]),
    ],
    ids=["missing", "empty", "garbage", "torn"],
)
def test_lost_metadata_is_refused_until_it_is_recovered(data: Path, damage: Callable[[Path], object]) -> None:
    damage(data / "metadata.db")
    before = sorted(data.rglob("*"))

    line = refused(data)

    assert line.startswith(f"odradek: data.dir: {data / 'metadata.db'} is ")
    assert "--recover-metadata" in line
    assert sorted(data.rglob("*")) == before
    with serving(data, "--recover-metadata") as serve:
        assert partitions_of(serve.bootstrap) == TOPICS
        for topic in TOPICS:
            produce(serve.bootstrap, topic, b"three")
            assert values_of(serve.bootstrap, topic) == [b"one", b"two", b"three"]
    assert not list((data / "logs").glob("*-stray"))
    with running_host(data) as host:
        assert partitions_of(host.bootstrap) == TOPICS
        assert values_of(host.bootstrap, "orders") == [b"one", b"two", b"three"]


def test_a_recovery_aborts_the_transactions_that_were_open(data: Path) -> None:
    with running_host(data) as host:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": host.bootstrap, "transactional.id": "t", "log_level": 0}
        )
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        producer.produce("orders", b"open", partition=0)
        producer.flush(TIMEOUT_S)
        shutil.copytree(data / "logs", data / "before the abort")
    shutil.rmtree(data / "logs")
    (data / "before the abort").rename(data / "logs")
    (data / "metadata.db").unlink()

    with serving(data, "--recover-metadata") as serve:
        produce(serve.bootstrap, "orders", b"three")
        assert values_of(serve.bootstrap, "orders") == [b"one", b"two", b"three"]


def test_a_damaged_schema_is_one_line(data: Path) -> None:
    file = data / "metadata.db"
    file.write_bytes(file.read_bytes().replace(b"CREATE TABLE topics", b"CREATE TABLE topicz", 1))

    line = refused(data)

    assert str(file) in line
    assert "restore the file" in line


def test_a_partition_in_two_directories_is_one_line(tmp_path: Path) -> None:
    both = ("--set", f"log.dirs={tmp_path / 'one'},{tmp_path / 'two'}")
    with running_host(tmp_path / "data", both[1]):
        pass
    [folder] = tmp_path.glob(f"*/{SPOOL}")
    other = tmp_path / ("two" if folder.parent.name == "one" else "one") / SPOOL
    other.mkdir()

    line = refused(tmp_path / "data", *both)

    assert line.startswith("odradek: log.dirs: ")
    assert "keep one of the folders" in line


def test_a_missing_segment_is_logged(data: Path) -> None:
    segment = data / "logs" / "orders-0" / f"{0:020d}.log"
    segment.unlink()

    with serving(data) as serve:
        assert values_of(serve.bootstrap, "users") == [b"one", b"two"]

    assert any("WARNING" in line and str(segment) in line for line in serve.errors)
