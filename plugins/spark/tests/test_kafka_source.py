"""A topic of Apache Kafka as the source, and Spark's own Kafka source with a login that only Java has."""

from __future__ import annotations

import json
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
PROGRAM = Path(__file__).with_name("four_lines.py")
FILLED = 100
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


def environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join(each for each in sys.path if each)
    return os.environ | {"PYTHONPATH": paths, "PYSPARK_PYTHON": sys.executable, **more}


def test_a_topic_of_apache_kafka_is_ingested(broker: str, tmp_path: Path) -> None:
    where = ("--bootstrap-server", broker, "--topic", TOPIC, "--dataset", str(tmp_path / "d"))

    done = subprocess.run(
        [sys.executable, "-m", "odradek_spark", "ingest", "--once", *where, "--master", "local[2]"],
        capture_output=True,
        text=True,
        timeout=300,
        env=environment(),
        check=False,
    )

    assert done.returncode == 0, done.stderr[-3000:]
    assert is_exactly(tmp_path / "d", every(FILLED, 2))


def test_a_login_that_only_java_has_is_for_sparks_own_source(
    jars: str, login_jar: Path, tmp_path: Path
) -> None:
    with odradek.testing.host(users={"pipeline": "secret"}) as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(40, partitions=2), **host.client())
        login = {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": host.client()["sasl.mechanism"],
            "kafka.sasl.jaas.config": 'TicketLogin required ticket="terces";',
        }
        done = subprocess.run(
            [
                sys.executable,
                str(PROGRAM),
                "kafka",
                host.bootstrap,
                TOPIC,
                str(tmp_path),
                f"{jars},{login_jar}",
            ],
            capture_output=True,
            text=True,
            timeout=500,
            env=environment(LOGIN=json.dumps(login)),
            check=False,
        )

    assert done.returncode == 0, done.stderr[-3000:]
    assert is_exactly(tmp_path / "tables", every(40, 2))
