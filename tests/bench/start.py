"""How long a test waits for a broker: from the start of its process to the first answer to ApiVersions.

Usage, from the folder above: ``python -m bench.start [--runs 5] [--kfake PROGRAM]``

The program for kfake prints one line with the address that it listens on, and ends when its stdin closes.
Apache Kafka needs Java and Maven; its time includes formatting the storage, which each new node needs.
"""

from __future__ import annotations

import argparse
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache

import confluent_kafka
from contrib.capture import kafka_node

import odradek.testing
from bench.frames import API_VERSIONS_V3, ask
from bench.harness import head, spread

ADDRESS = re.compile(r"127\.0\.0\.1:(\d+)")
STEP_S = 0.005
KAFKA_RUNS = 3


def answered(port: int) -> None:
    """Wait for the answer of a broker, which may not listen yet."""
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port)) as connection:
            ask(connection, API_VERSIONS_V3)
            return
        time.sleep(STEP_S)


def program(*command: str) -> float:
    """Seconds until a program that prints its address answers."""
    begin = time.perf_counter()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        found = ADDRESS.search(process.stdout.readline())
        assert found is not None, f"{command[0]} printed no address"
        answered(int(found[1]))
        spent = time.perf_counter() - begin
        process.communicate()
    return spent


def fixture() -> float:
    """Seconds of a host in this process, after the first one."""
    begin = time.perf_counter()
    with odradek.testing.host() as host:
        answered(host.address[1])
        return time.perf_counter() - begin


def librdkafka_mock() -> float:
    """Seconds until a librdkafka client knows its mock broker; it has no port that is known otherwise."""
    begin = time.perf_counter()
    producer = confluent_kafka.Producer({"test.mock.num.brokers": 1})
    producer.list_topics(timeout=10)
    spent = time.perf_counter() - begin
    del producer
    return spent


def apache_kafka() -> float:
    """Seconds of a new node with a JVM for a short life."""
    begin = time.perf_counter()
    with kafka_node.kafka_node() as node:
        answered(node.port)
        return time.perf_counter() - begin


def report(what: str, measure: Callable[[], float], runs: int) -> None:
    values = [measure() for _ in range(runs)]
    print(f"{what}: {spread(values, 3)} s, median and extremes of {len(values)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kfake", metavar="PROGRAM")
    arguments = parser.parse_args()
    print(head("start"), file=sys.stderr)
    fixture()  # imports the modules
    report("fixture, not the first of a session", fixture, 4 * arguments.runs)
    serve = (sys.executable, "-m", "odradek", "serve", "--ephemeral")
    program(*serve)
    report("odradek serve --ephemeral", lambda: program(*serve), arguments.runs)
    librdkafka_mock()
    report("mock broker of librdkafka, seen by its client", librdkafka_mock, arguments.runs)
    if arguments.kfake:
        report("kfake as a process", lambda: program(arguments.kfake), arguments.runs)
    kafka_node.java_classpath = cache(kafka_node.java_classpath)  # building it is not part of a start
    kafka_node.java_classpath(kafka_node.NEWEST)
    report(f"Apache Kafka {kafka_node.NEWEST}", apache_kafka, KAFKA_RUNS)


if __name__ == "__main__":
    main()
