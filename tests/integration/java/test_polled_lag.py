"""The lag of Apache Kafka's groups, polled: the right answer for each kind of group, topic and offset."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from contrib.capture.kafka_node import kafka_node
from contrib.capture.ports import free_port

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.client.partition_reading import first_batch
from odradek.client.resources import NewPartitions, NewTopic
from odradek.client.sasl import SaslLogin
from odradek.testing.host_security import acls_of
from odradek.waiting.clock import SystemClock
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from support.polled_lag import PolledLag
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@dataclass
class Scene:
    """A node, an administrator, and a poller with all rights."""

    bootstrap: str
    secure_bootstrap: str
    admin: AdminClient
    polled: PolledLag
    closing: list[Callable[[], None]] = field(default_factory=list)

    def topic(self, name: str, partitions: int = 1, **configs: str) -> str:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.admin.create_topics([NewTopic(name=name, partitions=partitions, configs=named)])
        return name

    def produce(self, topic: str, count: int = 1, timestamp_ms: int = 0) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 0})
        for _ in range(count):
            producer.produce(topic, b"v", partition=0, timestamp=timestamp_ms)
        assert producer.flush(30) == 0

    def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        """Commit an offset as a consumer that assigns its own partitions."""
        self.admin.offset_commit(group, {(topic, partition): CommittedOffset(offset)})

    def figures(self, group: str, topic: str, partition: int = 0) -> tuple[int, int, int, int] | None:
        """Lag, unstable, lost and ahead of a partition."""
        found = self.polled.at(group, topic, partition)
        return None if found is None else (*found.standing[1:],)

    def age_ms(self, group: str, topic: str) -> int | None:
        found = self.polled.at(group, topic)
        assert found is not None
        return found.time_ms


@pytest.fixture(scope="module")
def scene(java_classpath_4_4: str) -> Iterator[Scene]:
    secure = free_port()
    overrides = (
        f"listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},"
        f"SASL://127.0.0.1:{secure}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SASL://127.0.0.1:{secure}",
        "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms=PLAIN",
        f'listener.name.sasl.plain.sasl.jaas.config={LOGIN} required user_lag="secret";',
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:ANONYMOUS",
        "offsets.topic.num.partitions=1",
        "transaction.state.log.num.partitions=1",
        "share.coordinator.state.topic.num.partitions=1",
        "group.consumer.heartbeat.interval.ms=300",
        "group.consumer.min.heartbeat.interval.ms=100",
        "offsets.retention.check.interval.ms=500",
        "log.cleaner.backoff.ms=100",
    )
    with kafka_node(reporters="", overrides=overrides) as node:
        bootstrap = f"127.0.0.1:{node.port}"
        polled = PolledLag(bootstrap, SystemClock())
        with AdminClient(bootstrap, timeout_s=30) as admin:
            made = Scene(bootstrap, f"127.0.0.1:{secure}", admin, polled)
            yield made
            for close in made.closing:
                close()
        polled.positions.brokers.close()


def consumer(scene: Scene, group: str, topic: str, **settings: Any) -> Any:
    """A consumer that is a member and has its assignment."""
    made = confluent_kafka.Consumer(
        {
            "bootstrap.servers": scene.bootstrap,
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    scene.closing.append(made.close)
    made.subscribe([topic])
    return made


def read(made: Any, count: int) -> list[Any]:
    messages: list[Any] = []

    def enough() -> bool:
        message = made.poll(0.2)
        if message is not None and message.error() is None:
            messages.append(message)
        return len(messages) >= count

    wait_until(enough, "messages")
    return messages


def transactional(scene: Scene, name: str) -> Any:
    producer = confluent_kafka.Producer({"bootstrap.servers": scene.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    return producer


def in_transaction(producer: Any, topic: str, count: int) -> None:
    producer.begin_transaction()
    for _ in range(count):
        producer.produce(topic, b"v", partition=0)
    assert producer.flush(30) == 0


def now_ms() -> int:
    return int(time.time() * 1_000)


def test_offsets_of_consumers_that_assign_their_own_partitions(scene: Scene) -> None:
    """Behind, past the end, back to the beginning, and nothing unread however long ago that was."""
    topic = scene.topic("manual")
    begin_ms = now_ms()
    scene.produce(topic, 10)
    produced_ms = now_ms()
    scene.commit("behind", topic, 4)
    scene.commit("ahead", topic, 60)
    scene.commit("read", topic, 10)
    asked_ms = now_ms()
    scene.polled.round()

    assert scene.figures("behind", topic) == (6, 0, 0, 0)
    assert scene.figures("ahead", topic) == (0, 0, 0, 50)
    assert scene.figures("read", topic) == (0, 0, 0, 0)
    assert scene.age_ms("ahead", topic) == scene.age_ms("read", topic) == 0
    age_ms = scene.age_ms("behind", topic)
    assert age_ms is not None
    assert asked_ms - produced_ms <= age_ms <= now_ms() - begin_ms
    found = scene.polled.of("behind")
    assert found is not None
    assert (found.state, found.type, found.members) == ("Empty", "classic", 0)

    scene.commit("read", topic, 2)
    scene.polled.round()
    assert scene.figures("read", topic) == (8, 0, 0, 0)


def test_records_that_were_deleted_are_lost_and_no_lag(scene: Scene) -> None:
    topic = scene.topic("deleted")
    scene.produce(topic, 10)
    scene.commit("late", topic, 2)
    scene.admin.delete_records({(topic, 0): 7})
    scene.polled.round()

    assert scene.figures("late", topic) == (3, 0, 5, 0)


def test_a_timestamp_that_lies_is_not_believed(scene: Scene) -> None:
    topic = scene.topic("lies")
    scene.commit("believer", topic, 0)
    begin_ms = now_ms()
    scene.polled.round()
    scene.produce(topic, timestamp_ms=1_000)
    scene.polled.note_ends()
    scene.polled.round()

    age_ms = scene.age_ms("believer", topic)
    assert age_ms is not None
    assert 0 <= age_ms <= now_ms() - begin_ms


def test_members_without_an_offset_have_no_lag(scene: Scene) -> None:
    topic = scene.topic("uncommitted", 2)
    scene.produce(topic, 3)
    for group, protocol in (("old", "classic"), ("new", "consumer")):
        read(consumer(scene, group, topic, group_protocol=protocol), 3)
    scene.polled.round()

    for group, kind in (("old", "classic"), ("new", "consumer")):
        found = scene.polled.of(group)
        assert found is not None
        assert (found.type, found.state, found.members) == (kind, "Stable", 1)
        assert found.topics[topic].partitions == ()
        assert (found.topics[topic].assigned, found.topics[topic].uncommitted) == (2, 2)
        assert [*found.topics[topic].owners] == [0, 1]
        assert {each.address for each in found.topics[topic].owners.values()} == {"127.0.0.1"}


def test_only_the_marker_of_a_transaction_is_no_lag(scene: Scene) -> None:
    """A consumer that commits the message after the last one never gets past the marker."""
    topic = scene.topic("markers")
    producer = transactional(scene, "markers")
    in_transaction(producer, topic, 10)
    producer.commit_transaction(30)
    made = consumer(scene, "transactional", topic)
    made.commit(read(made, 10)[-1], asynchronous=False)
    scene.polled.round()

    assert scene.polled.at("transactional", topic) is not None
    assert scene.figures("transactional", topic) == (0, 0, 0, 0)
    assert scene.admin.offset_fetch("transactional")[topic, 0].offset == 10

    scene.produce(topic)
    scene.polled.round()
    assert scene.figures("transactional", topic) == (2, 0, 0, 0)


def test_an_open_transaction_and_an_aborted_one(scene: Scene) -> None:
    topic = scene.topic("open")
    scene.produce(topic, 2)
    producer = transactional(scene, "open")
    in_transaction(producer, topic, 3)
    scene.commit("waits", topic, 1)
    scene.polled.round()
    assert scene.figures("waits", topic) == (4, 3, 0, 0)

    producer.abort_transaction(30)
    scene.polled.round()
    assert scene.figures("waits", topic) == (5, 0, 0, 0)


def test_a_topic_that_is_deleted_and_created_again(scene: Scene) -> None:
    topic = scene.topic("again")
    scene.produce(topic, 5)
    scene.commit("reader", topic, 1)
    scene.commit("reader", scene.topic("stays"), 0)
    scene.polled.round()
    assert scene.figures("reader", topic) == (4, 0, 0, 0)

    scene.admin.delete_topics([topic])
    scene.polled.round()
    assert scene.polled.at("reader", topic) is None
    assert scene.figures("reader", "stays") == (0, 0, 0, 0)

    scene.topic(topic)
    scene.produce(topic)
    scene.commit("reader", topic, 0)
    scene.polled.round()
    assert scene.figures("reader", topic) == (1, 0, 0, 0)


def test_partitions_that_are_added_and_groups_that_are_deleted(scene: Scene) -> None:
    topic = scene.topic("grows")
    scene.commit("grown", topic, 0)
    scene.polled.round()
    scene.admin.create_partitions({topic: NewPartitions(2)})
    scene.commit("grown", topic, 0, partition=1)
    scene.polled.round()
    assert scene.figures("grown", topic, 1) == (0, 0, 0, 0)

    scene.admin.delete_groups(["grown"])
    scene.polled.round()
    assert scene.polled.of("grown") is None
    assert "grown" not in scene.polled.positions.groups()


def test_a_compacted_topic_is_counted_by_offsets(scene: Scene) -> None:
    """An upper bound of the records that are left."""
    topic = scene.topic("compacted", cleanup_policy="compact", min_cleanable_dirty_ratio="0", segment_ms="1")
    producer = confluent_kafka.Producer({"bootstrap.servers": scene.bootstrap, "linger.ms": 0})
    for _ in range(50):
        producer.produce(topic, b"v", key=b"k", partition=0)
    assert producer.flush(30) == 0
    producer.produce(topic, b"v", key=b"last", partition=0)  # begins a segment, so that others are compacted
    assert producer.flush(30) == 0
    scene.commit("compacting", topic, 0)

    def first_left() -> int:
        heads = scene.polled.positions.brokers.client().cluster.any()
        found = first_batch(heads, (topic, 0), 0, 51)
        assert found is not None
        return found.last_offset if found.record_count == 1 else 0

    wait_until(lambda: first_left() >= 40, first_left)
    scene.polled.round()
    scene.polled.round()

    assert scene.figures("compacting", topic) == (51, 0, 0, 0)


def test_an_expired_offset_is_no_offset(scene: Scene) -> None:
    topic = scene.topic("expiring")
    scene.produce(topic)
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    request = OffsetCommitRequest(
        group_id="expired",
        retention_time_ms=3_000,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    answer = scene.admin.cluster.any().send(request, most_version=4)
    assert not answer.topics[0].partitions[0].error_code
    scene.polled.round()
    assert scene.figures("expired", topic) == (1, 0, 0, 0)

    def is_gone() -> bool:
        scene.polled.round()
        return scene.polled.of("expired") is None or scene.figures("expired", topic) is None

    wait_until(is_gone, "the offset has expired")


def test_a_share_group_has_the_lag_that_the_broker_counts(scene: Scene, jvm: Jvm) -> None:
    topic = scene.topic("shared")
    scene.produce(topic, 10)
    tools = ConsoleTools(jvm, scene.bootstrap)
    options = ("--topic", topic, "--group-id", "sharing", "--offset-reset-strategy", "earliest")
    tools.run("kafka-verifiable-share-consumer", *options, "--max-messages", "10")

    def counted() -> bool:
        scene.polled.round()
        return scene.figures("sharing", topic) == (0, 0, 0, 0)

    wait_until(counted, lambda: f"{scene.polled.of('sharing')} {scene.polled.problems}", 20)
    found = scene.polled.of("sharing")
    assert found is not None
    assert found.type == "share"
    scene.produce(topic, 3)
    scene.polled.round()
    assert scene.figures("sharing", topic) == (3, 0, 0, 0)
    assert scene.age_ms("sharing", topic) is None


def test_what_may_not_be_seen_is_left_out_said_once_and_counted(scene: Scene) -> None:
    for name in ("rights-open", "rights-closed"):
        scene.produce(scene.topic(name), 2)
        scene.commit("rights-reader", name, 0)
    scene.commit("secret-reader", "rights-open", 0)

    def connect() -> AdminClient:
        return AdminClient(scene.secure_bootstrap, timeout_s=10, login=SaslLogin("PLAIN", "lag", "secret"))

    polled = PolledLag(scene.secure_bootstrap, SystemClock(), connect=connect)

    def grant(*texts: str) -> None:
        assert set(scene.admin.create_acls([acl for text in texts for acl in acls_of(text)]).values()) == {
            None
        }

    polled.round()
    assert polled.positions.groups() == {}

    grant("lag DESCRIBE cluster")
    wait_until(lambda: polled.round().refused, "the right to list groups", 20)
    assert polled.positions.groups() == {}
    assert polled.positions.outcome == "refused"

    grant("lag DESCRIBE group:rights-reader", "lag DESCRIBE topic:rights-open")
    wait_until(lambda: polled.round().groups(), "the right to see a group", 20)
    polled.round()
    found = polled.of("rights-reader")
    assert found is not None
    assert {name: each.lag for name, each in found.topics.items()} == {"rights-open": 2}
    assert "secret-reader" in polled.positions.refused
    assert polled.positions.left_out["rights"] == len(polled.positions.refused)
    assert len(polled.problems) == len(set(polled.problems))
    assert any(each.startswith("no right DESCRIBE on ") for each in polled.problems)
    assert "no right READ on 1 topics, such as rights-open" in polled.problems
    polled.positions.brokers.close()


@pytest.mark.nightly
@pytest.mark.timeout(600)
def test_a_group_of_ten_thousand_partitions_has_the_lag_of_each(scene: Scene) -> None:
    topics = [scene.topic(f"wide-{number}", 1_000) for number in range(10)]
    places = [(topic, partition) for topic in topics for partition in range(1_000)]
    producer = confluent_kafka.Producer({"bootstrap.servers": scene.bootstrap, "linger.ms": 100})
    for topic, partition in places[::7]:
        for _ in range(1 + partition % 3):
            producer.produce(topic, b"v", partition=partition)
        producer.poll(0)
    assert producer.flush(120) == 0
    scene.admin.offset_commit("wide", {place: CommittedOffset(0) for place in places})

    scene.polled.round()

    found = scene.polled.of("wide")
    assert found is not None
    lags = {
        (topic, each.partition): each.standing.lag
        for topic, of_topic in found.topics.items()
        for each in of_topic.partitions
    }
    unread = {(topic, partition): 1 + partition % 3 for topic, partition in places[::7]}
    assert lags == dict.fromkeys(places, 0) | unread
