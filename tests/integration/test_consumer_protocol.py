"""The consumer protocol (KIP-848) with librdkafka as pip installs it: ``group.protocol=consumer`` and no
other setting that a user would not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.hosts import ThreadedHost, running_host

confluent_kafka = pytest.importorskip("confluent_kafka")
admin = pytest.importorskip("confluent_kafka.admin")

TIMEOUT_S = 40.0
PARTITIONS = 4
QUICK = (
    "group.consumer.min.heartbeat.interval.ms=100",
    "group.consumer.heartbeat.interval.ms=300",
    "group.consumer.min.session.timeout.ms=1000",
    "group.consumer.session.timeout.ms=6000",
    "group.consumer.assignment.interval.ms=0",
)
"""Short, so that a test does not wait for heartbeats of 5 s."""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("data"), *QUICK) as host:
        yield host


def create(host: ThreadedHost, *topics: str) -> None:
    creator = admin.AdminClient({"bootstrap.servers": host.bootstrap})
    wanted = [admin.NewTopic(topic, PARTITIONS, 1) for topic in topics]
    for future in creator.create_topics(wanted).values():
        future.result(10)


def produce(host: ThreadedHost, topic: str, values: range) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": host.bootstrap})
    for value in values:
        producer.produce(topic, str(value).encode(), partition=value % PARTITIONS)
    assert producer.flush(20) == 0


class Member:
    """A consumer and the records it has read."""

    def __init__(self, host: ThreadedHost, group: str, *topics: str, **config: object) -> None:
        self.read: list[int] = []
        self.consumer: Any = confluent_kafka.Consumer(
            {
                "bootstrap.servers": host.bootstrap,
                "group.id": group,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **config,
            }
        )
        self.consumer.subscribe(list(topics))

    def poll(self) -> None:
        message = self.consumer.poll(0.005)
        if message is not None:
            assert message.error() is None, message.error()
            self.read.append(int(message.value()))

    @property
    def partitions(self) -> set[tuple[str, int]]:
        return {(each.topic, each.partition) for each in self.consumer.assignment()}


def poll_until(done: Callable[[], bool], *members: Member) -> None:
    """Poll all members in turn."""
    deadline_s = time.monotonic() + TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline_s, [member.partitions for member in members]
        for member in members:
            member.poll()


def everything(*topics: str) -> set[tuple[str, int]]:
    return {(topic, partition) for topic in topics for partition in range(PARTITIONS)}


def described(host: ThreadedHost, group: str) -> Any:
    client = admin.AdminClient({"bootstrap.servers": host.bootstrap})
    return client.describe_consumer_groups([group])[group].result(10)


def test_two_members_share_the_partitions_and_one_takes_over(host: ThreadedHost) -> None:
    create(host, "shared-848")
    produce(host, "shared-848", range(400))
    first = Member(host, "sharing", "shared-848")
    poll_until(lambda: first.partitions == everything("shared-848"), first)

    second = Member(host, "sharing", "shared-848")
    poll_until(lambda: len(first.partitions) == len(second.partitions) == 2, first, second)

    assert first.partitions | second.partitions == everything("shared-848")
    second.consumer.close()
    poll_until(lambda: first.partitions == everything("shared-848"), first)
    first.consumer.close()


def test_a_later_member_resumes_at_the_committed_offsets(host: ThreadedHost) -> None:
    create(host, "resumed")
    produce(host, "resumed", range(100))
    first = Member(host, "resuming", "resumed")
    poll_until(lambda: len(first.read) == 100, first)
    first.consumer.commit(asynchronous=False)
    first.consumer.close()
    produce(host, "resumed", range(100, 160))

    second = Member(host, "resuming", "resumed")
    poll_until(lambda: len(second.read) == 60, second)

    assert sorted(first.read) == list(range(100))
    assert sorted(second.read) == list(range(100, 160))
    second.consumer.close()


def test_every_record_is_read_once_by_members_that_commit_over_a_rebalance(host: ThreadedHost) -> None:
    create(host, "moving")
    produce(host, "moving", range(2_000))
    # auto-commit stores positions before partitions are revoked
    first = Member(host, "movers", "moving", **{"enable.auto.commit": True})
    poll_until(lambda: len(first.read) >= 200, first)

    second = Member(host, "movers", "moving", **{"enable.auto.commit": True})
    poll_until(lambda: len(first.read) + len(second.read) >= 2_000, first, second)

    assert sorted(first.read + second.read) == list(range(2_000))
    for member in (first, second):
        member.consumer.close()


def test_a_static_member_that_restarts_gets_its_partitions_back(host: ThreadedHost) -> None:
    create(host, "static-848")
    other = Member(host, "statics-848", "static-848", **{"group.instance.id": "other"})
    first = Member(host, "statics-848", "static-848", **{"group.instance.id": "one"})
    poll_until(lambda: len(first.partitions) == len(other.partitions) == 2, first, other)
    before = first.partitions
    first.consumer.close()
    poll_until(lambda: other.partitions == everything("static-848") - before, other)

    again = Member(host, "statics-848", "static-848", **{"group.instance.id": "one"})
    poll_until(lambda: bool(again.partitions), again, other)

    assert again.partitions == before
    for member in (again, other):
        member.consumer.close()


def test_a_regular_expression_finds_topics_created_later(host: ThreadedHost) -> None:
    create(host, "logs-a", "metrics-a")
    member = Member(host, "matching", "^logs-.*")
    poll_until(lambda: member.partitions == everything("logs-a"), member)

    create(host, "logs-b")
    poll_until(lambda: member.partitions == everything("logs-a", "logs-b"), member)

    assert member.partitions == everything("logs-a", "logs-b")
    member.consumer.close()


def test_the_range_assignor_is_used_on_request(host: ThreadedHost) -> None:
    create(host, "ranged-a", "ranged-b")
    members = [
        Member(host, "ranging", "ranged-a", "ranged-b", **{"group.remote.assignor": "range"})
        for _ in range(2)
    ]

    poll_until(lambda: all(len(member.partitions) == PARTITIONS for member in members), *members)

    for member in members:
        ours = {index for topic, index in member.partitions if topic == "ranged-a"}
        assert ours in ({0, 1}, {2, 3})
        assert ours == {index for topic, index in member.partitions if topic == "ranged-b"}
        member.consumer.close()


def test_an_admin_client_sees_the_group(host: ThreadedHost) -> None:
    create(host, "seen")
    member = Member(host, "watched", "seen", **{"client.id": "app"})
    poll_until(lambda: member.partitions == everything("seen"), member)

    group = described(host, "watched")

    assert group.state == confluent_kafka.ConsumerGroupState.STABLE
    (seen,) = group.members
    assert (seen.client_id, seen.host) == ("app", "/127.0.0.1")
    assert {(each.topic, each.partition) for each in seen.assignment.topic_partitions} == everything("seen")
    member.consumer.close()


@pytest.mark.ci  # waits for real seconds
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_is_converted_to_the_consumer_protocol_and_back(host: ThreadedHost, strategy: str) -> None:
    topic = f"moved-{strategy}"
    create(host, topic)
    produce(host, topic, range(400))
    classic = {"group.protocol": "classic", "partition.assignment.strategy": strategy}
    old = Member(host, topic, topic, **classic, **{"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300})
    poll_until(lambda: old.partitions == everything(topic), old)

    new = Member(host, topic, topic)
    poll_until(lambda: len(old.partitions) == len(new.partitions) == 2, old, new)

    assert old.partitions | new.partitions == everything(topic)
    new.consumer.close()
    poll_until(lambda: old.partitions == everything(topic), old)
    old.consumer.close()


def test_members_continue_after_a_restart_of_the_host(tmp_path: Path) -> None:
    with running_host(tmp_path, *QUICK) as host:
        create(host, "kept")
        produce(host, "kept", range(40))
        port = host.address[1]
        member = Member(host, "staying", "kept")
        poll_until(lambda: len(member.read) == 40, member)
        member.consumer.commit(asynchronous=False)

    with running_host(tmp_path, *QUICK, f"listeners=PLAINTEXT://127.0.0.1:{port}") as host:
        produce(host, "kept", range(40, 80))
        poll_until(lambda: len(member.read) == 80, member)
        member.consumer.close()

    assert sorted(member.read) == list(range(80))
