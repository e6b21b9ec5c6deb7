"""How long a test waits for a broker: from the start of its process to the first answer to ApiVersions.

Usage, from the folder above: ``python -m bench.start [--runs 5] [--kfake PROGRAM]``

The program for kfake prints one line with the address that it listens on, and ends when its stdin closes.
Apache Kafka needs Java and Maven; its time includes formatting the storage, which each new node needs.
"""

from __future__ import annotations

import argparse
import re
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache

import confluent_kafka
from contrib.capture import kafka_node

import odradek.testing
from bench.comparison import Comparison, Goal, compared
from bench.frames import API_VERSIONS_V3, ask
from bench.harness import UnavailableError, head, skip, spread
from bench.servers import KAFKA, MOCK

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


def apache_kafka_is_ready() -> None:
    """Find or fetch what Kafka needs, which is not a part of its start.

    Raises:
        UnavailableError: This machine cannot run it.
    """
    kafka_node.java_classpath = cache(kafka_node.java_classpath)
    try:
        kafka_node.java_classpath(kafka_node.NEWEST)
    except (SystemExit, OSError) as reason:
        raise UnavailableError(str(reason)) from None


def report(what: str, measure: Callable[[], float], runs: int) -> float:
    """Start and stop something, and print the seconds until it answers; return their median."""
    values = [measure() for _ in range(runs)]
    print(f"{what}: {spread(values, 3)} s, median and extremes of {len(values)}", flush=True)
    return statistics.median(values)


def comparisons(runs: int, kfake: str | None = None) -> Iterator[Comparison]:
    """The lines of the table."""
    fixture()  # imports the modules
    of_fixture = report("fixture, not the first of a session", fixture, 4 * runs)
    serve = (sys.executable, "-m", "odradek", "serve", "--ephemeral")
    program(*serve)
    of_serve = report("odradek serve --ephemeral", lambda: program(*serve), runs)
    librdkafka_mock()
    peers = {MOCK: report("mock broker of librdkafka, seen by its client", librdkafka_mock, runs)}
    if kfake:
        peers["kfake"] = report("kfake as a process", lambda: program(kfake), runs)
    try:
        apache_kafka_is_ready()
        peers[KAFKA] = report(f"Apache Kafka {kafka_node.NEWEST}", apache_kafka, KAFKA_RUNS)
    except UnavailableError as reason:
        skip(KAFKA, reason)
    for row, ours in (("fixture, a start", of_fixture), ("odradek serve --ephemeral, a start", of_serve)):
        yield from compared(row, "s", {row: ours} | peers, [row], [Goal(peer=KAFKA, most=1)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--kfake", metavar="PROGRAM")
    arguments = parser.parse_args()
    print(head("start"), file=sys.stderr)
    for line in comparisons(arguments.runs, arguments.kfake):
        print(line)


if __name__ == "__main__":
    main()
