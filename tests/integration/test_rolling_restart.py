"""Two gateways behind HAProxy are restarted in turn, and no client notices."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from support.balancer import Balanced, balanced
from support.hosts import ServeProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

CLIENTS = 4
"""Producers of each library, with a consumer each."""
PAUSE_S = 0.01
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


def librdkafka(run: Run, client: int) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer(
        {
            "bootstrap.servers": run.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "error_cb": run.problems.append,
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


LIBRARIES: dict[str, Callable[[Run, int], None]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


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
            "error_cb": problems.append,
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
    runs = {name: Run(f"rolling-{name}", place.bootstrap, stop) for name in LIBRARIES}
    with ThreadPoolExecutor(CLIENTS * len(runs)) as threads:
        working = [
            threads.submit(LIBRARIES[name], run, client)
            for name, run in runs.items()
            for client in range(CLIENTS)
        ]
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
