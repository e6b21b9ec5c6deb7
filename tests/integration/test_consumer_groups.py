"""Consumer groups of the classic protocol, as applications use them: subscribe, share, commit, resume."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Protocol

import pytest

from support.hosts import ServeProcess, ThreadedHost, running_host, serving
from support.waiting import wait_until

PARTITIONS = 4
RECORDS = 200
AT_ONCE = "group.initial.rebalance.delay.ms=0"
PATIENCE_S = 30.0
SESSION_MS = 30_000
"""Longer than a busy machine may stand still."""


class GroupConsumer(Protocol):
    """The operations of a consumer that the tests use, whichever library it is from."""

    values: list[bytes]
    partitions: set[int]
    """The assignment at the last poll: the libraries must not be asked from another thread."""

    def poll(self) -> None:
        """Take available records, and let the library do its work, for a fraction of a second."""

    def commit(self) -> None:
        """Commit all polled records."""

    def close(self) -> None:
        """Leave the group, without committing."""


class ConfluentConsumer:
    """A librdkafka consumer."""

    def __init__(self, bootstrap: str, topic: str, **settings: object) -> None:
        confluent_kafka = pytest.importorskip("confluent_kafka")
        self.values: list[bytes] = []
        self.partitions: set[int] = set()
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": f"readers-of-{topic}",
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 500,
                "log_level": 2,
            }
            | settings
        )
        self.consumer.subscribe([topic])

    def poll(self) -> None:
        for message in self.consumer.consume(100, 0.2):
            assert message.error() is None, message.error()
            self.values.append(message.value())
        self.partitions = {partition.partition for partition in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


class KafkaPythonConsumer:
    """A kafka-python consumer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        kafka = pytest.importorskip("kafka")
        self.values: list[bytes] = []
        self.partitions: set[int] = set()
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=f"readers-of-{topic}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
        )
        # The library may assign partitions before it knows those of the topic.
        wait_until(lambda: self.consumer.partitions_for_topic(topic), topic)
        self.consumer.subscribe([topic])

    def poll(self) -> None:
        for messages in self.consumer.poll(timeout_ms=200).values():
            self.values += [message.value for message in messages]
        self.partitions = {partition.partition for partition in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit()

    def close(self) -> None:
        self.consumer.close(autocommit=False)


class AiokafkaConsumer:
    """An aiokafka consumer, on an event loop in a thread."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.aiokafka = pytest.importorskip("aiokafka")
        self.values: list[bytes] = []
        self.partitions: set[int] = set()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.consumer = self.call(self.start(bootstrap, topic))

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE_S)

    async def start(self, bootstrap: str, topic: str) -> Any:
        consumer = self.aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=f"readers-of-{topic}",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=500,
        )
        await consumer.start()
        return consumer

    def poll(self) -> None:
        for messages in self.call(self.consumer.getmany(timeout_ms=200)).values():
            self.values += [message.value for message in messages]
        self.partitions = {partition.partition for partition in self.consumer.assignment()}

    def commit(self) -> None:
        self.call(self.consumer.commit())

    def close(self) -> None:
        self.call(self.consumer.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(10)
        self.loop.close()


LIBRARIES = {
    "confluent-kafka": ConfluentConsumer,
    "kafka-python": KafkaPythonConsumer,
    "aiokafka": AiokafkaConsumer,
}
Maker = type[ConfluentConsumer] | type[KafkaPythonConsumer] | type[AiokafkaConsumer]


@pytest.fixture(params=LIBRARIES)
def make(request: pytest.FixtureRequest) -> Maker:
    return LIBRARIES[request.param]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ThreadedHost]:
    with running_host(tmp_path, AT_ONCE) as host:
        yield host


def until(consumers: list[GroupConsumer], done: Callable[[], bool]) -> None:
    """Poll all consumers, each in its own thread, until a condition is true."""
    ended = threading.Event()
    failures: list[BaseException] = []

    def work(consumer: GroupConsumer) -> None:
        try:
            while not ended.is_set():
                consumer.poll()
        except BaseException as error:  # noqa: BLE001  raised again below
            failures.append(error)

    threads = [threading.Thread(target=work, args=(consumer,), daemon=True) for consumer in consumers]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE_S
    try:
        while not done() and not failures and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        ended.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert not failures, failures
    assert done(), [(consumer.partitions, len(consumer.values)) for consumer in consumers]


def create(bootstrap: str, topic: str) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient({"bootstrap.servers": bootstrap})
    client.create_topics([admin.NewTopic(topic, PARTITIONS, 1)])[topic].result(10)


def produce(bootstrap: str, topic: str, first: int = 0) -> list[bytes]:
    """Records spread over all partitions; their values."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    values = [b"%d" % number for number in range(first, first + RECORDS)]
    for number, value in enumerate(values):
        producer.produce(topic, value, partition=number % PARTITIONS)
    assert producer.flush(10) == 0
    producer.close()
    return values


def shared(consumers: list[GroupConsumer]) -> bool:
    """Whether every partition has one reader, and every consumer a partition."""
    parts = [consumer.partitions for consumer in consumers]
    return all(parts) and sorted(index for part in parts for index in part) == list(range(PARTITIONS))


@pytest.mark.ci  # waits for real seconds
def test_two_members_share_the_partitions_and_one_takes_over_from_the_other(
    host: ThreadedHost, make: Maker
) -> None:
    topic = f"shared-of-{make.__name__}"
    create(host.bootstrap, topic)
    with ExitStack() as stack:
        first = make(host.bootstrap, topic)
        stack.callback(first.close)
        until([first], lambda: shared([first]))
        second = make(host.bootstrap, topic)
        closed = stack.enter_context(ExitStack())
        closed.callback(second.close)
        until([first, second], lambda: shared([first, second]))
        values = produce(host.bootstrap, topic)
        until([first, second], lambda: len(first.values) + len(second.values) >= RECORDS)
        assert sorted(first.values + second.values) == sorted(values)
        assert first.values
        assert second.values
        first.commit()
        second.commit()
        closed.close()
        until([first], lambda: shared([first]))
        more = produce(host.bootstrap, topic, first=RECORDS)
        until([first], lambda: len(first.values) + len(second.values) >= 2 * RECORDS)
        assert sorted(first.values + second.values) == sorted(values + more)


def read_and_commit(make: Maker, bootstrap: str, count: int) -> list[bytes]:
    """Let a new member of the group read and commit ``count`` records; return their values."""
    consumer = make(bootstrap, "kept")
    try:
        until([consumer], lambda: len(consumer.values) >= count)
        consumer.commit()
    finally:
        consumer.close()
    return consumer.values


@pytest.mark.ci
def test_offsets_are_resumed_after_a_restart(tmp_path: Path, make: Maker) -> None:
    with serving(tmp_path, "--set", AT_ONCE) as serve:
        create(serve.bootstrap, "kept")
        before = produce(serve.bootstrap, "kept")
        first = read_and_commit(make, serve.bootstrap, RECORDS)
    with serving(tmp_path, "--set", AT_ONCE) as serve:
        after = produce(serve.bootstrap, "kept", first=RECORDS)
        second = read_and_commit(make, serve.bootstrap, RECORDS)

    assert sorted(first) == sorted(before)
    assert sorted(second) == sorted(after)


@pytest.mark.ci
def test_committed_offsets_survive_kill_9(tmp_path: Path) -> None:
    with serving(tmp_path, "--set", AT_ONCE) as serve:
        create(serve.bootstrap, "kept")
        produce(serve.bootstrap, "kept")
        consumer = ConfluentConsumer(serve.bootstrap, "kept", **{"session.timeout.ms": 6_000})
        until([consumer], lambda: len(consumer.values) >= RECORDS)
        consumer.commit()
        serve.kill()
        consumer.close()
    with serving(tmp_path, "--set", AT_ONCE) as serve:
        after = produce(serve.bootstrap, "kept", first=RECORDS)
        again = read_and_commit(ConfluentConsumer, serve.bootstrap, RECORDS)

    assert sorted(again) == sorted(after)


@pytest.mark.ci
def test_a_consumer_survives_a_restart_of_the_host(tmp_path: Path) -> None:
    with ExitStack() as stack:
        serve = stack.enter_context(serving(tmp_path, "--set", AT_ONCE))
        address = serve.bootstrap
        create(address, "kept")
        before = produce(address, "kept")
        consumer = ConfluentConsumer(address, "kept", **{"reconnect.backoff.max.ms": 500})
        stack.callback(consumer.close)
        until([consumer], lambda: len(consumer.values) >= RECORDS)
        consumer.commit()
        serve.terminate()
        arguments = ("--set", f"data.dir={tmp_path}", "--set", f"listeners=PLAINTEXT://{address}")
        again = ServeProcess(*arguments, "--set", AT_ONCE)
        stack.callback(again.terminate)
        after = produce(address, "kept", first=RECORDS)
        until([consumer], lambda: len(consumer.values) >= 2 * RECORDS)

    assert sorted(consumer.values) == sorted(before + after)


def test_a_returning_static_member_keeps_its_partitions(host: ThreadedHost) -> None:
    create(host.bootstrap, "static")
    consumers = [
        ConfluentConsumer(host.bootstrap, "static", **{"group.instance.id": name}) for name in ("one", "two")
    ]
    with ExitStack() as stack:
        stack.callback(consumers[0].close)
        until(list(consumers), lambda: shared(list(consumers)))
        generation = host.call(lambda: host.host.broker.groups.group("readers-of-static").generation)
        before = consumers[1].partitions
        consumers[1].close()
        again = ConfluentConsumer(host.bootstrap, "static", **{"group.instance.id": "two"})
        stack.callback(again.close)
        until([consumers[0], again], lambda: shared([consumers[0], again]))
        after = again.partitions
        generation_after = host.call(lambda: host.host.broker.groups.group("readers-of-static").generation)

    assert after == before
    assert generation_after == generation


def test_a_cooperative_rebalance_revokes_only_partitions_that_move(host: ThreadedHost) -> None:
    create(host.bootstrap, "cooperative")
    settings = {"partition.assignment.strategy": "cooperative-sticky"}
    first = ConfluentConsumer(host.bootstrap, "cooperative", **settings)
    lost: list[set[int]] = []
    first.consumer.subscribe(
        ["cooperative"],
        on_revoke=lambda _, partitions: lost.append({partition.partition for partition in partitions}),
    )
    with ExitStack() as stack:
        stack.callback(first.close)
        until([first], lambda: shared([first]))
        second = ConfluentConsumer(host.bootstrap, "cooperative", **settings)
        stack.callback(second.close)
        until([first, second], lambda: shared([first, second]))
        revoked = list(lost)
        taken = second.partitions

    assert revoked == [taken]


def test_groups_are_listed_described_and_deleted_by_an_admin_client(host: ThreadedHost) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    create(host.bootstrap, "described")
    client = admin.AdminClient({"bootstrap.servers": host.bootstrap})
    consumer = ConfluentConsumer(host.bootstrap, "described", **{"client.id": "reader"})
    group = "readers-of-described"
    until([consumer], lambda: shared([consumer]))

    listed = client.list_consumer_groups().result(10).valid
    described = client.describe_consumer_groups([group])[group].result(10)
    consumer.close()
    emptied = client.describe_consumer_groups([group])[group].result(10)
    client.delete_consumer_groups([group])[group].result(10)

    ours = [one for one in listed if one.group_id == group]
    assert [(one.state.name, one.type.name) for one in ours] == [("STABLE", "CLASSIC")]
    assert [member.client_id for member in described.members] == ["reader"]
    assigned = described.members[0].assignment.topic_partitions
    assert {partition.partition for partition in assigned} == set(range(PARTITIONS))
    assert (emptied.state.name, emptied.members) == ("EMPTY", [])
    assert group not in [one.group_id for one in client.list_consumer_groups().result(10).valid]
