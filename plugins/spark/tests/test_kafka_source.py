"""A topic of Apache Kafka as the source, and Spark's own Kafka source with its jar instead of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ingested import every, is_exactly, until
from maven import jar
from spark_topics import TOPIC, fill, records

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
PROGRAM = Path(__file__).with_name("ingest_elsewhere.py")
# the newest of each on Maven Central; they work with the installed Spark
SPARK_KAFKA, TOKENS, KAFKA = "4.2.0", "4.0.0", "4.3.1"
JARS = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_KAFKA}",
    f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{TOKENS}",
    "org.apache.commons:commons-pool2:2.12.1",
    f"org.apache.kafka:kafka-clients:{KAFKA}",
)


@pytest.fixture(scope="module")
def jars() -> str:
    return ",".join(str(jar(each)) for each in JARS)


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """An Apache Kafka node with the topic and a hundred records."""
    from contrib.capture.kafka_node import kafka_node

    with kafka_node() as node:
        bootstrap = f"127.0.0.1:{node.port}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        until(lambda: TOPIC in admin.list_topics(timeout=10).topics)
        fill(bootstrap, records(100, partitions=2))
        yield bootstrap


def ingest(bootstrap: str, dataset: Path, *jars: str) -> None:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "local[2]", bootstrap, str(dataset), *jars],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_topic_of_apache_kafka_is_ingested_by_either_source_and_by_both_in_turn(
    broker: str, jars: str, tmp_path: Path
) -> None:
    dataset, count = tmp_path / "d", 100
    for given in ((), (jars,), (jars,), ()):
        ingest(broker, dataset, *given)
        # the other source has another kind of checkpoint: the tables know where to continue
        shutil.rmtree(dataset / "_checkpoints")
        assert is_exactly(dataset, every(count, 2))
        fill(broker, records(50, first=count, partitions=2))
        count += 50
