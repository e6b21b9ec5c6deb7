"""One Apache Kafka KRaft node on loopback, in a temporary directory, that offers the telemetry APIs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from contrib.capture.ports import answers, free_port

JAVA = Path(__file__).resolve().parent.parent / "java"
START_TIMEOUT_S = 300
"""Long, for a machine with other work."""
STOP_TIMEOUT_S = 20
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
"""A node lives for a minute: code that is compiled further never pays for its compilation."""
LOGGING = (
    f"-Dlog4j2.configurationFile={JAVA / 'log4j2.properties'}",
    f"-Dlog4j.configuration=file:{JAVA / 'log4j.properties'}",
)
"""The second is for brokers before 4.0."""
NEWEST = "4.4.0"
"""The version of Kafka that the host follows."""
FIRST_WITH_OUR_SOURCES = 4
CLUSTER_ID = "T2RyYWRlay1jYXB0dXJlLQ"
TELEMETRY_REPORTER = "odradek.SilentTelemetry"
TELEMETRY_MAX_BYTES = 4096
"""Small, so that "too large" fits into a file of golden bytes."""

PROPERTIES = """\
process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.quorum.voters=1@127.0.0.1:{controller_port}
log.dirs={data_dir}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
metric.reporters={reporters}
telemetry.max.bytes={max_bytes}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaNode:
    """A running node."""

    port: int
    version: str
    log: Path
    pid: int


def java_classpath(kafka: str) -> str:
    """The class path of a version; the oldest ones come without the sources of ``contrib/java``."""
    option = "--broker" if int(kafka.partition(".")[0]) < FIRST_WITH_OUR_SOURCES else "--kafka"
    command = [sys.executable, str(JAVA / "classpath.py"), option, kafka]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()


def kafka_version(classpath: str) -> str:
    found = re.search(r"kafka_2\.13-(\d[^/:]*)\.jar", classpath)
    if found is None:
        raise SystemExit("no kafka_2.13 in the class path")
    return found.group(1)


def java(classpath: str, main_class: str, *args: str, options: Sequence[str] = QUICK_START) -> list[str]:
    return ["java", "-Xmx1g", *options, *LOGGING, "-cp", classpath, main_class, *args]


def wait_until_up(node: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    while not answers(port):
        if node.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"Kafka did not start:\n{log.read_text()[-3000:]}")
        time.sleep(0.2)


def format_storage(
    classpath: str, folder: Path, port: int, reporters: str, overrides: Iterable[str] = ()
) -> str:
    """Write ``server.properties``, prepare the data directory and return the file's path."""
    properties = str(folder / "server.properties")
    settings = {"port": port, "controller_port": free_port(), "reporters": reporters}
    text = PROPERTIES.format(data_dir=folder / "data", max_bytes=TELEMETRY_MAX_BYTES, **settings)
    lines = (line.replace("{port}", str(port)) for line in overrides)
    lines = (line.replace("{controller_port}", str(settings["controller_port"])) for line in lines)
    Path(properties).write_text(text + "".join(f"{line}\n" for line in lines))
    command = java(classpath, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-3000:]
        raise SystemExit(f"Kafka's storage tool ended with status {done.returncode}:\n{said}")
    return properties


def stop(node: subprocess.Popen[bytes]) -> None:
    node.send_signal(signal.SIGTERM)
    try:
        node.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        node.kill()
        node.wait()


@contextmanager
def kafka_node(
    reporters: str = TELEMETRY_REPORTER,
    overrides: Iterable[str] = (),
    kafka: str = NEWEST,
    options: Sequence[str] = QUICK_START,
    jars: Sequence[str] = (),
) -> Iterator[KafkaNode]:
    """Format, start, yield, stop and delete one node. Its log is printed if it does not start.

    Args:
        reporters: Classes for ``metric.reporters``.
        overrides: Lines for ``server.properties``, as ``key=value``; ``{port}`` and ``{controller_port}`` are
            those of the node.
        kafka: The version.
        options: Options of the JVM.
        jars: Jars of plugins, in addition to the broker's own.
    """
    classpath = os.pathsep.join([java_classpath(kafka), *jars])
    with tempfile.TemporaryDirectory(prefix="kafka-node-") as name:
        folder = Path(name)
        port = free_port()
        properties = format_storage(classpath, folder, port, reporters, overrides)
        with (folder / "node.log").open("wb") as log:
            command = java(classpath, "kafka.Kafka", properties, options=options)
            node = subprocess.Popen(command, stdout=log, stderr=log)
            try:
                wait_until_up(node, port, folder / "node.log")
                version = kafka_version(classpath)
                yield KafkaNode(port=port, version=version, log=folder / "node.log", pid=node.pid)
            finally:
                stop(node)
