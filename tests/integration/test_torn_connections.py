"""Real clients write numbers while connections are cut and processes stand still or die.

No number is lost or stored twice. Half of the clients use a host, the others a gateway in front of it. All
connections to the host pass through a proxy that cuts and delays them.
"""

from __future__ import annotations

import asyncio
import random
import signal
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.resources import NewTopic
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.gateways import GatewayProcess
from support.hosts import ServeProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

TOPIC = "numbers"
FAULTS_S = 20
STILL_S = 2.0
DELAY_S = 0.2
BETWEEN_S = 1.5
FLUSH_S = 90
PAUSE_S = 0.005


class Numbers(threading.Thread):
    """A producer that writes 0, 1, 2, ... with its name as the key, until it is told to stop."""

    def __init__(self, name: str, bootstrap: str) -> None:
        super().__init__(name=name)
        self.bootstrap = bootstrap
        self.stopped = threading.Event()
        self.acknowledged: list[int] = []
        self.errors: list[str] = []


class Librdkafka(Numbers):
    """An idempotent producer of librdkafka."""

    def run(self) -> None:
        kafka = pytest.importorskip("confluent_kafka")
        config = {"bootstrap.servers": self.bootstrap, "enable.idempotence": True, "linger.ms": 5}
        producer = kafka.Producer(config | {"error_cb": self.failed, "reconnect.backoff.max.ms": 500})
        number = 0
        while not self.stopped.wait(PAUSE_S):
            producer.produce(TOPIC, key=self.name, value=str(number), on_delivery=self.delivered)
            producer.poll(0)
            number += 1
        if left := producer.flush(FLUSH_S):
            self.errors.append(f"{left} records are not delivered")

    def failed(self, error: Any) -> None:
        if error.fatal():
            self.errors.append(str(error))

    def delivered(self, error: Any, message: Any) -> None:
        if error is None:
            self.acknowledged.append(int(message.value()))
        else:
            self.errors.append(str(error))


class Aiokafka(Numbers):
    """An idempotent producer of aiokafka."""

    def run(self) -> None:
        asyncio.run(self.produce())

    async def produce(self) -> None:
        aiokafka = pytest.importorskip("aiokafka")
        number, waiting = 0, set()
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=self.bootstrap, enable_idempotence=True, request_timeout_ms=5_000
        ) as producer:
            while not self.stopped.is_set():
                sent = await producer.send(TOPIC, str(number).encode(), self.name.encode())
                task = asyncio.ensure_future(self.delivered(number, sent))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                number += 1
                await asyncio.sleep(PAUSE_S)
            await asyncio.wait_for(producer.flush(), FLUSH_S)
            await asyncio.gather(*waiting)

    async def delivered(self, number: int, sent: asyncio.Future[Any]) -> None:
        try:
            await sent
        except Exception as error:  # noqa: BLE001  the test looks at them
            self.errors.append(repr(error))
        else:
            self.acknowledged.append(number)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Restarted:
    """A process that comes back on the same ports after it was killed."""

    def __init__(self, make: Callable[[], ServeProcess]) -> None:
        self.make = make
        self.running = make()

    def kill(self) -> None:
        """End it at once, and start it again."""
        self.running.kill()
        self.running = self.make()

    def stand_still(self) -> None:
        """Stop it for a while, as a paused virtual machine."""
        self.running.process.send_signal(signal.SIGSTOP)
        time.sleep(STILL_S)
        self.running.process.send_signal(signal.SIGCONT)


def options(*settings: str) -> list[str]:
    return [part for setting in settings for part in ("--set", setting)]


@contextmanager
def programs(folder: Path) -> Iterator[tuple[Restarted, Restarted, CuttingProxy, int, int]]:
    """A host and a gateway, the proxy before the host, and the ports of clients."""
    inside, front = free_port(), free_port()
    with ExitStack() as ending:
        proxy, port = ending.enter_context(cutting_proxy(inside))
        listeners = (f"listeners=PLAINTEXT://127.0.0.1:{inside}",)
        advertised = f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}"
        delay = "group.initial.rebalance.delay.ms=0"
        serve = options(*listeners, advertised, f"data.dir={folder / 'host'}", delay)
        host = Restarted(lambda: ServeProcess(*serve))
        ending.callback(lambda: host.running.terminate())
        before = options(f"listeners=PLAINTEXT://127.0.0.1:{front}", f"data.dir={folder / 'gateway'}")
        gateway = Restarted(lambda: GatewayProcess("--upstream", f"127.0.0.1:{port}", *before))
        ending.callback(lambda: gateway.running.terminate())
        yield host, gateway, proxy, port, front


def tear(host: Restarted, gateway: Restarted, proxy: CuttingProxy, seed: int) -> list[str]:
    """Do one fault after the other for a while; return their names."""
    done: list[str] = []
    chance, end = random.Random(seed), time.monotonic() + FAULTS_S

    def slow() -> None:
        proxy.delay_s = DELAY_S
        time.sleep(STILL_S)
        proxy.delay_s = 0.0

    faults = {
        "cut": proxy.cut,
        "slow": slow,
        "host killed": host.kill,
        "host stands still": host.stand_still,
        "gateway killed": gateway.kill,
        "gateway stands still": gateway.stand_still,
    }
    names = list(faults)
    chance.shuffle(names)
    while time.monotonic() < end:
        name = names[len(done) % len(names)]
        faults[name]()
        done.append(name)
        time.sleep(chance.uniform(0, BETWEEN_S))
    return done


def stored(port: int) -> dict[str, list[int]]:
    """The numbers in the topic, by key, in the order of their offsets."""
    kafka = pytest.importorskip("confluent_kafka")
    config = {"bootstrap.servers": f"127.0.0.1:{port}", "group.id": "reader", "auto.offset.reset": "earliest"}
    consumer = kafka.Consumer(config | {"enable.partition.eof": True, "enable.auto.commit": False})
    consumer.assign([kafka.TopicPartition(TOPIC, 0, 0)])
    found: dict[str, list[int]] = defaultdict(list)
    try:
        while True:
            message = consumer.poll(20)
            assert message is not None, "the topic cannot be read to its end"
            if message.error() is None:
                found[message.key().decode()].append(int(message.value()))
            elif message.error().code() == kafka.KafkaError._PARTITION_EOF:
                return found
    finally:
        consumer.close()


@pytest.mark.parametrize("seed", [1])
def test_numbers_of_real_clients_are_stored_once_and_in_order(tmp_path: Path, seed: int) -> None:
    with programs(tmp_path) as (host, gateway, proxy, port, front):
        with AdminClient(f"127.0.0.1:{port}") as admin:
            admin.create_topics([NewTopic(name=TOPIC, partitions=1)])
        clients = [
            kind(f"{kind.__name__} {where}", f"127.0.0.1:{at}")
            for kind in (Librdkafka, Aiokafka)
            for where, at in (("direct", port), ("gateway", front))
        ]
        for client in clients:
            client.start()
        wait_until(lambda: all(len(each.acknowledged) > 20 for each in clients), "a client does not begin")
        done = tear(host, gateway, proxy, seed)
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join(FLUSH_S + 10)
        found = stored(port)

    assert set(done) == {
        "cut",
        "slow",
        "host killed",
        "host stands still",
        "gateway killed",
        "gateway stands still",
    }
    assert proxy.cuts
    for client in clients:
        assert not client.is_alive(), f"{client.name} does not end"
        assert client.errors == [], client.name
        assert len(client.acknowledged) > 100, client.name
        assert found[client.name] == sorted(client.acknowledged), client.name
        assert sorted(client.acknowledged) == list(range(len(client.acknowledged))), client.name
