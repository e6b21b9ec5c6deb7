"""A host and Apache Kafka answer the same script about streams groups alike, over kill -9 of both."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.kafka_node import NEWEST, format_storage, java, java_classpath, wait_until_up
from contrib.capture.ports import free_port

from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from odradek.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from odradek.wire.messages.streams_group_heartbeat import (
    Setting,
    StreamsGroupHeartbeatRequest,
    TaskOffset,
    UserEndpoint,
)
from support.hosts import ServeProcess
from support.random_script import in_common
from support.streams_groups import GROUP, tasks, topology
from support.streams_requests import join
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]

TOPICS = {"words": 4, "log": 4}
SETTINGS = (
    "auto.create.topics.enable=false",
    "group.streams.initial.rebalance.delay.ms=0",
    "group.streams.assignment.interval.ms=0",
)
REPORTER = ""


class Ours:
    """A host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def start(self) -> int:
        settings = ("listeners=PLAINTEXT://127.0.0.1:0", f"data.dir={self.folder}", *SETTINGS)
        self.process = ServeProcess(*(option for each in settings for option in ("--set", each)))
        return int(self.process.bootstrap.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()


class Theirs:
    """A node of Apache Kafka."""

    def __init__(self, folder: Path) -> None:
        self.classpath, self.port, self.log = java_classpath(NEWEST), free_port(), folder / "node.log"
        self.properties = format_storage(self.classpath, folder, self.port, REPORTER, SETTINGS)

    def start(self) -> int:
        with self.log.open("ab") as log:
            command = java(self.classpath, "kafka.Kafka", self.properties)
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        wait_until_up(self.process, self.port, self.log)
        return self.port

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@dataclass
class Side:
    """One of the two brokers."""

    broker: Ours | Theirs
    client: WireClient = field(init=False)

    def start(self) -> None:
        self.client = WireClient(("127.0.0.1", self.broker.start()), "streams", timeout_s=30)
        wait_until(self.has_coordinator, "a coordinator")

    def kill(self) -> None:
        self.client.socket.close()
        self.broker.kill()

    def has_coordinator(self) -> bool:
        (found,) = self.client.send(FindCoordinatorRequest(coordinator_keys=[GROUP]), 4).coordinators
        return not found.error_code and self.ask(beat("m0", 5, group_id="none"))["error_code"] == 69

    def restart(self) -> None:
        """Kill it without a warning, and start it again."""
        self.kill()
        self.start()

    def prepare(self) -> None:
        new = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        for topic in self.client.send(CreateTopicsRequest(topics=new, timeout_ms=30_000), 7).topics:
            assert not topic.error_code

    def ask(self, request: Any, version: int | None = None) -> Any:
        return in_common(self.client.send(request, request.VERSIONS.last if version is None else version))

    def joins(self, request: StreamsGroupHeartbeatRequest, epoch: int) -> Any:
        """The answer to a member that joins, once its tasks are computed: a busy host does that later."""

        def answer() -> Any:
            found = self.ask(request)
            return found if found["member_epoch"] == epoch else None

        return wait_until(answer, f"epoch {epoch}")


def beat(
    member_id: str, epoch: int, *active: int, standby: tuple[int, ...] = (), **fields: Any
) -> StreamsGroupHeartbeatRequest:
    """A heartbeat of a member that reports these tasks."""
    owned = {"active_tasks": tasks(*active), "standby_tasks": tasks(*standby), "warmup_tasks": []}
    return StreamsGroupHeartbeatRequest(
        **{"group_id": GROUP, "member_id": member_id, "member_epoch": epoch, **owned, **fields}
    )


def idle(member_id: str, epoch: int, **fields: Any) -> StreamsGroupHeartbeatRequest:
    """A heartbeat of a member that reports nothing."""
    return StreamsGroupHeartbeatRequest(group_id=GROUP, member_id=member_id, member_epoch=epoch, **fields)


def joining(member_id: str, source: str = "words", **fields: Any) -> StreamsGroupHeartbeatRequest:
    """A member with a state joins."""
    named = {"member_id": member_id, "process_id": f"process of {member_id}", "rebalance_timeout_ms": 60_000}
    return join(topology(source, changelog="log"), **{**named, **fields})


def offsets(member_id: str, epoch: int) -> OffsetFetchRequest:
    asked = OffsetFetchRequestGroup(group_id=GROUP, member_id=member_id, member_epoch=epoch, topics=None)
    return OffsetFetchRequest(groups=[asked])


def commit(member_id: str, epoch: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    return OffsetCommitRequest(
        group_id=GROUP,
        member_id=member_id,
        generation_id_or_member_epoch=epoch,
        topics=[OffsetCommitRequestTopic(name="words", partitions=[partition])],
    )


def consumer(epoch: int) -> ConsumerGroupHeartbeatRequest:
    """A heartbeat of another type of group, which is emptied in the same way."""
    return ConsumerGroupHeartbeatRequest(
        group_id="c",
        member_id="c",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["words"],
        topic_partitions=[],
    )


def known(side: Side) -> Iterator[tuple[str, Any]]:
    """What both say of the group."""
    groups = StreamsGroupDescribeRequest(group_ids=[GROUP, "unknown"], include_authorized_operations=True)
    yield "described", side.ask(groups)
    yield "as consumers", side.ask(ConsumerGroupDescribeRequest(group_ids=[GROUP]))
    yield "listed", side.ask(ListGroupsRequest(types_filter=["streams"]))


FACTS: dict[str, Any] = {
    "rack_id": "r1",
    "user_endpoint": UserEndpoint(host="h", port=9),
    "client_tags": [Setting(key="zone", value="a")],
    "task_offsets": [TaskOffset(subtopology_id="s", partition=0, offset=9)],
}
WRONG: tuple[Callable[[], Any], ...] = (
    lambda: beat("m1", 1, 0, 1),
    lambda: beat("m1", 9, 0, 1),
    lambda: beat("m9", 2),
    lambda: offsets("m1", 9),
    lambda: offsets("m9", 3),
    lambda: commit("m1", 9),
    lambda: commit("m9", 3),
    lambda: joining("m9", "log"),
)
"""What is refused at any time."""


def script(side: Side) -> Iterator[tuple[str, Any]]:
    """Each request by name, with its answer."""
    side.start()
    side.prepare()
    side.ask(consumer(0))  # what it is assigned depends on when Kafka's coordinator learns of the topic
    yield "a consumer leaves", side.ask(consumer(-1))
    yield "is gone", side.ask(ConsumerGroupDescribeRequest(group_ids=["c"]))
    yield "joined", side.joins(joining("m1"), 2)
    yield "stays", side.ask(beat("m1", 2, 0, 1, 2, 3))
    # later than its first request: Kafka fails at an endpoint in a group that is new
    yield "has more to say", side.joins(joining("m1", **FACTS), 3)
    yield "stays", side.ask(beat("m1", 3, 0, 1, 2, 3))
    yield "commits", side.ask(commit("m1", 3), 9)
    yield from known(side)
    yield "a second", side.joins(joining("m2", instance_id="i2"), 4)
    yield "told", side.ask(beat("m1", 3, 0, 1, 2, 3))
    side.restart()
    yield "the second waits", side.ask(idle("m2", 4, instance_id="i2"))
    yield from known(side)
    yield "told again", side.ask(beat("m1", 3, 0, 1, 2, 3))
    yield "gives up", side.ask(beat("m1", 3, 0, 1))
    yield "takes", side.ask(idle("m2", 4, instance_id="i2"))
    yield "reads offsets", side.ask(offsets("m1", 4), 9)
    yield "commits", side.ask(commit("m1", 4), 9)
    yield "stays", side.ask(beat("m1", 4, 0, 1))
    yield "stays", side.ask(beat("m2", 4, 2, 3, instance_id="i2"))
    yield from known(side)
    for number, wrong in enumerate(WRONG):
        yield f"wrong {number}", without_text(side.ask(wrong()))
    yield "lost an answer", side.ask(joining("m1", **FACTS))
    yield "leaves for a while", side.ask(idle("m2", -2, instance_id="i2"))
    side.restart()
    yield "is back", side.ask(joining("m3", instance_id="i2", process_id="process of m2"))
    yield "was replaced", without_text(side.ask(idle("m2", 4, instance_id="i2")))
    yield "stays", side.ask(idle("m1", 4))
    yield from known(side)
    yield "shutdown", side.ask(idle("m1", 4, shutdown_application=True))
    yield "all are told", side.ask(idle("m3", 4, instance_id="i2"))
    side.restart()
    yield "nobody is told", side.ask(idle("m3", 4, instance_id="i2"))
    yield "left", [side.ask(idle("m3", -1, instance_id="i2")), side.ask(idle("m1", -1))]
    yield from known(side)
    side.restart()
    yield "another topology", without_text(side.ask(joining("m4", "log")))
    yield "anew", side.joins(joining("m4"), 7)
    yield "left again", side.ask(idle("m4", -1))
    yield "deleted", side.ask(DeleteGroupsRequest(groups_names=[GROUP]), 2)
    yield from known(side)


def without_text(answer: Any) -> Any:
    """An answer without its message."""
    return {name: value for name, value in answer.items() if name != "error_message"}


def test_the_answers_are_kafkas(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    sides = [Side(Theirs(tmp_path / "theirs")), Side(Ours(tmp_path / "ours"))]
    with ExitStack() as stack:
        answers = []
        for side in sides:
            stack.callback(side.kill)
            answers.append(list(script(side)))

    theirs, ours = answers
    assert ours == theirs
    assert len(theirs) > 40
