"""A topic of Apache Kafka as the source, and Spark's own Kafka source with its jar instead of ours."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ingested import every, is_exactly, until
from maven import jar
from spark_topics import TOPIC, fill, records

import odradek.testing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
PROGRAM = Path(__file__).with_name("ingest_in_turn.py")
FILLED, MORE = 100, 50
# the newest of each on Maven Central; they work with the installed Spark
SPARK_KAFKA, TOKENS, KAFKA = "4.2.0", "4.0.0", "4.3.1"
JARS = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{SPARK_KAFKA}",
    f"org.apache.spark:spark-token-provider-kafka-0-10_2.13:{TOKENS}",
    "org.apache.commons:commons-pool2:2.12.1",
    f"org.apache.kafka:kafka-clients:{KAFKA}",
)
LOGIN = """
import java.util.Map;
import javax.security.auth.Subject;
import javax.security.auth.callback.CallbackHandler;
import org.apache.kafka.common.security.scram.ScramLoginModule;

public class TicketLogin extends ScramLoginModule {
    @Override
    public void initialize(Subject of, CallbackHandler calls, Map<String, ?> state, Map<String, ?> options) {
        String password = new StringBuilder((String) options.get("ticket")).reverse().toString();
        super.initialize(of, calls, state, Map.of("username", "pipeline", "password", password));
    }
}
"""
"""A login that no other client has: it computes the password."""


@pytest.fixture(scope="module")
def jars() -> str:
    return ",".join(str(jar(each)) for each in JARS)


@pytest.fixture
def login_jar(jars: str, tmp_path: Path) -> Path:
    """A jar with `LOGIN`."""
    if shutil.which("javac") is None:
        pytest.skip("needs a JDK")
    (tmp_path / "TicketLogin.java").write_text(LOGIN)
    command = ["javac", "-cp", jars.replace(",", os.pathsep), "TicketLogin.java"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=60)
    with zipfile.ZipFile(tmp_path / "login.jar", "w") as archive:
        archive.write(tmp_path / "TicketLogin.class", "TicketLogin.class")
    return tmp_path / "login.jar"


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    """An Apache Kafka node with the topic and `FILLED` records."""
    from contrib.capture.kafka_node import kafka_node

    with kafka_node() as node:
        bootstrap = f"127.0.0.1:{node.port}"
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(TOPIC, 2, 1)])[TOPIC].result(30)
        until(lambda: TOPIC in admin.list_topics(timeout=10).topics)
        fill(bootstrap, records(FILLED, partitions=2))
        yield bootstrap


def test_a_topic_of_apache_kafka_is_ingested_by_either_source_and_by_both_in_turn(
    broker: str, jars: str, tmp_path: Path
) -> None:
    dataset, turns = tmp_path / "d", ("odradek", "kafka", "kafka", "odradek")

    done = subprocess.run(
        [sys.executable, str(PROGRAM), broker, str(dataset), jars, str(FILLED), str(MORE), *turns],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert is_exactly(dataset, every(FILLED + MORE * (len(turns) - 1), 2))


def spark_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek_spark", "ingest", "--once", "--topic", TOPIC, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
        check=False,
    )


def test_a_login_that_only_java_has_is_for_sparks_own_source(
    jars: str, login_jar: Path, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    dataset = str(tmp_path / "d")
    with odradek.testing.host(users={"pipeline": "secret"}) as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(20, partitions=2), **host.client())
        file.write_text(
            f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism={host.client()['sasl.mechanism']}\n"
            'sasl.jaas.config=TicketLogin required ticket="terces";\n'
        )
        common = ("--bootstrap-server", host.bootstrap, "--dataset", dataset, "--command-config", str(file))
        refused = spark_command(*common)
        conf = f"spark.jars={jars},{login_jar}"
        done = spark_command(*common, "--source", "kafka", "--conf", conf, "--master", "local[2]")

    assert refused.returncode == 1
    assert "Error: kafka options: Java JAAS configuration is not supported" in refused.stderr
    assert done.returncode == 0, done.stderr[-3000:]
    assert "ingested 20 pushes, 60 points, 0 dead letters" in done.stdout
    assert is_exactly(Path(dataset), every(20, 2))
