"""Two gateways behind HAProxy are restarted in turn, and none of fifty clients of four libraries notices."""

from __future__ import annotations

import asyncio
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest

from integration.java.jvm import Jvm, built_classpath
from support.balancer import Balanced, balanced
from support.hosts import ServeProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

CLIENTS, JAVA_CLIENTS = 12, 14
"""Producers of each Python library, and of Kafka's own: fifty."""
PAUSE_S = 0.1
Problems = list[object]
Sent = list[bytes]


class Run:
    """What the clients of one library have sent, read, and complained about."""

    def __init__(self, topic: str, bootstrap: str, stop: threading.Event) -> None:
        self.topic, self.bootstrap, self.stop = topic, bootstrap, stop
        self.sent: Sent = []
        self.acknowledged: Sent = []
        self.problems: Problems = []

    def values(self, client: int) -> Iterator[bytes]:
        """The records of one producer, until the end."""
        number = 0
        while not self.stop.wait(PAUSE_S):
            value = f"{client}-{number}".encode()
            self.sent.append(value)
            number += 1
            yield value


def note(problems: Problems, error: Any) -> None:
    """Note an error of librdkafka, unless it says that all brokers are down, which it calls information.

    A connection that it does not need is down for it until it needs it again. So it can say this when the
    last one is closed, though that one is back some milliseconds later.
    """
    if error.name() != "_ALL_BROKERS_DOWN":
        problems.append(error)


def librdkafka(run: Run, client: int) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer(
        {
            "bootstrap.servers": run.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "error_cb": partial(note, run.problems),
        }
    )

    def delivered(error: object, message: Any) -> None:
        if error is None:
            run.acknowledged.append(message.value())
        else:
            run.problems.append(error)

    for value in run.values(client):
        producer.produce(run.topic, value, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(30) == 0


def kafka_python(run: Run, client: int) -> None:
    kafka = pytest.importorskip("kafka")
    producer = kafka.KafkaProducer(bootstrap_servers=run.bootstrap, enable_idempotence=True)
    for value in run.values(client):
        producer.send(run.topic, value).add_callback(
            lambda _found, value=value: run.acknowledged.append(value)
        ).add_errback(run.problems.append)
    producer.flush(30)
    producer.close()


def aiokafka(run: Run, client: int) -> None:
    aio = pytest.importorskip("aiokafka")

    async def produce() -> None:
        producer = aio.AIOKafkaProducer(bootstrap_servers=run.bootstrap, enable_idempotence=True)
        await producer.start()
        values = run.values(client)
        while (value := await asyncio.to_thread(next, values, None)) is not None:
            try:
                await producer.send_and_wait(run.topic, value)
                run.acknowledged.append(value)
            except Exception as error:  # noqa: BLE001  any error is one that the application sees
                run.problems.append(error)
        await producer.stop()

    asyncio.run(produce())


def java(run: Run, clients: int) -> None:
    jvm = Jvm(built_classpath())
    arguments = (run.bootstrap, run.topic, str(clients), str(int(PAUSE_S * 1000)))
    with jvm.started("odradek.SteadyProducers", *arguments, stdin=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        for line in process.stdout:
            what, value, *why = line.split(maxsplit=2)
            kept = {"sent": run.sent, "acknowledged": run.acknowledged}.get(what)
            if kept is None:
                run.problems.append(" ".join((value, *why)))
            else:
                kept.append(value.encode())
            if run.stop.is_set() and not process.stdin.closed:
                process.stdin.write("end\n")
                process.stdin.close()
        assert process.wait(30) == 0


LIBRARIES: dict[str, Callable[[Run, int], None]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}
NAMES = (*LIBRARIES, "java")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    cluster = ServeProcess("--ephemeral", "--brokers", "3")
    try:
        with balanced(cluster.bootstrap, tmp_path_factory.mktemp("balanced")) as made:
            yield made
    finally:
        cluster.kill()


def read_back(bootstrap: str, topics: list[str], number: int, problems: Problems) -> Counter[bytes]:
    """All records, by value, as a consumer of librdkafka reads them through the balancer."""
    kafka = pytest.importorskip("confluent_kafka")
    consumer = kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "auto.offset.reset": "earliest",
            "error_cb": partial(note, problems),
        }
    )
    consumer.subscribe(topics)
    found: Counter[bytes] = Counter()
    while found.total() < number and (messages := consumer.consume(500, 10)):
        found.update(message.topic().encode() + message.value() for message in messages)
    found.update(message.topic().encode() + message.value() for message in consumer.consume(500, 0.5))
    consumer.close()
    return found


def goes_on(runs: list[Run]) -> None:
    """Wait until clients of each library have written more."""
    before = [len(run.acknowledged) for run in runs]
    wait_until(
        lambda: all(len(run.acknowledged) > count + 50 for run, count in zip(runs, before, strict=True)),
        "all clients go on",
        patience_s=60,
    )


def test_no_client_notices_that_both_gateways_are_restarted(place: Balanced) -> None:
    stop = threading.Event()
    runs = {name: Run(f"rolling-{name}", place.bootstrap, stop) for name in NAMES}
    with ThreadPoolExecutor(CLIENTS * len(LIBRARIES) + 1) as threads:
        working = [
            threads.submit(made, runs[name], client)
            for name, made in LIBRARIES.items()
            for client in range(CLIENTS)
        ]
        working.append(threads.submit(java, runs["java"], JAVA_CLIENTS))
        goes_on(list(runs.values()))
        for name in ("a", "b"):
            place.restart(name)
            goes_on(list(runs.values()))
        stop.set()
        for each in working:
            each.result(60)

    problems: Problems = []
    sent = Counter(run.topic.encode() + value for run in runs.values() for value in run.sent)
    found = read_back(place.bootstrap, [run.topic for run in runs.values()], sent.total(), problems)

    assert {name: run.problems for name, run in runs.items()} == {name: [] for name in runs}
    assert problems == []
    assert found == sent
