"""Scenarios of the APIs of share groups (KIP-932): members, what they get and say, and offsets."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from contrib.capture.golden import Recorder, Scenario, exchange
from contrib.capture.group_scenarios import GROUP, until_loaded
from contrib.capture.host_requests import request
from contrib.capture.record_scenarios import batch, send
from contrib.capture.topic_scenarios import DYNAMIC_IDS, NOBODY, create, delete_all, new

from odradek.client.connection import answer_type
from odradek.wire.codec import decode
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_share_group_offsets import (
    AlteredPartition,
    AlteredTopic,
    AlterShareGroupOffsetsRequest,
)
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.delete_share_group_offsets import DeletedTopic, DeleteShareGroupOffsetsRequest
from odradek.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    ShareOffsetsGroup,
    ShareOffsetsTopic,
)
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
    ShareAcknowledgeRequest,
)
from odradek.wire.messages.share_fetch import FetchPartition, FetchTopic, ShareFetchRequest
from odradek.wire.messages.share_group_describe import ShareGroupDescribeRequest
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

GROUP_RESOURCE = 32
PARTITIONS = 2
PATIENCE_S = 60.0
PAUSE_S = 0.2
WAIT_MS = 4_500
"""Records come as soon as they can."""
Words = tuple[int, int, list[int]]
"""First offset, last offset, and types."""


def beat(say: Recorder, label: str, group: str, epoch: int = 0, **fields: Any) -> None:
    message = ShareGroupHeartbeatRequest(group_id=group, member_id="m", member_epoch=epoch)
    for name, value in fields.items():
        setattr(message, name, value)
    say.ask(label, request(message, 1))


def asked(say: Recorder, message: Any) -> Any:
    """The answer to a request that changes nothing and is not recorded."""
    version = message.VERSIONS.last
    frame = exchange(say.channel, request(message, version).frame(correlation_id=0))
    return decode(answer_type(type(message)), version, frame or b"", 5)


def until(question: str, holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"not in time: {question}")
        time.sleep(PAUSE_S)


def serves(say: Recorder) -> bool:
    """Whether the coordinator knows that it has no such group."""
    nobody = ShareGroupHeartbeatRequest(group_id="none", member_id="m", member_epoch=5)
    return bool(asked(say, nobody).error_code == ErrorCode.GROUP_ID_NOT_FOUND)


def initialized(say: Recorder, group: str) -> int:
    """The number of partitions with a delivery state: a node makes them in the background."""
    everything = DescribeShareGroupOffsetsRequest(groups=[ShareOffsetsGroup(group_id=group, topics=None)])
    return sum(len(topic.partitions) for each in asked(say, everything).groups for topic in each.topics)


def joined(say: Recorder, group: str, *topics: str) -> None:
    """A group of one member, which has all partitions and reads them from the beginning."""
    settings = {"share.auto.offset.reset": "earliest", "share.assignment.interval.ms": "0"}
    configs = [AlterableConfig(name=name, value=value) for name, value in settings.items()]
    resource = AlterConfigsResource(resource_type=GROUP_RESOURCE, resource_name=group, configs=configs)
    say.ask("settings", request(IncrementalAlterConfigsRequest(resources=[resource]), 1))
    until("a coordinator of share groups", lambda: serves(say))
    beat(say, "join", group, subscribed_topic_names=list(topics))
    until("delivery states", lambda: initialized(say, group) == PARTITIONS)
    beat(say, "partitions", group, 2)


def batches(words: Iterable[Words]) -> list[AcknowledgementBatch]:
    return [
        AcknowledgementBatch(first_offset=first, last_offset=last, acknowledge_types=types)
        for first, last, types in words
    ]


def fetch(
    say: Recorder,
    label: str,
    topic_id: bytes,
    epoch: int,
    *words: Words,
    version: int = 2,
    partitions: Iterable[int] = (),
    **fields: Any,
) -> None:
    named = [
        FetchPartition(partition_index=index, acknowledgement_batches=batches(words) if not index else [])
        for index in (partitions or (range(1) if words else ()))
    ]
    message = ShareFetchRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=1 << 20,
        max_records=500,
        batch_size=500,
        topics=[FetchTopic(topic_id=topic_id, partitions=named)] if named else [],
    )
    for name, value in fields.items():
        setattr(message, name, value)
    say.ask(label, request(message, version))


def acknowledge(
    say: Recorder,
    label: str,
    topic_id: bytes,
    epoch: int,
    *words: Words,
    version: int = 2,
    partition: int = 0,
    **fields: Any,
) -> None:
    named = AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches(words))
    message = ShareAcknowledgeRequest(
        group_id="g",
        member_id="m",
        share_session_epoch=epoch,
        topics=[AcknowledgeTopic(topic_id=topic_id, partitions=[named])] if words else [],
    )
    for name, value in fields.items():
        setattr(message, name, value)
    say.ask(label, request(message, version))


def prepared(say: Recorder, *, records: int = 0) -> bytes:
    """Group ``g`` that reads topic ``shared`` with batches of five records; the id of the topic."""
    until("the end of the former topic", lambda: not exists(say))
    say.note(DYNAMIC_IDS)
    until_loaded(say, GROUP)
    topic_id = create(say, "a topic", new("shared", PARTITIONS))["shared"]
    until("the topic", lambda: exists(say))
    for number in range(records // 5):
        send(say, f"batch {number}", ("shared", topic_id), batch(*[b"%d" % number] * 5))
    joined(say, "g", "shared")
    return topic_id


def exists(say: Recorder) -> bool:
    wanted = MetadataRequest(topics=[MetadataRequestTopic(name="shared")], allow_auto_topic_creation=False)
    return not asked(say, wanted).topics[0].error_code


def ended(say: Recorder) -> None:
    """Leave no group and no topic behind."""
    beat(say, "leave", "g", -1)
    say.ask("delete the group", request(DeleteGroupsRequest(groups_names=["g"]), 2))
    delete_all(say, "shared")


def lived(say: Recorder) -> None:
    prepared(say)
    beat(say, "again", "g", 3)
    beat(say, "the epoch before", "g", 2)
    beat(say, "with topics", "g", 3, subscribed_topic_names=["shared", "none"])
    beat(say, "rejoin", "g", subscribed_topic_names=["shared"])
    ended(say)
    beat(say, "of no group", "g", 3)


def refused(say: Recorder) -> None:
    prepared(say)
    cases: dict[str, dict[str, Any]] = {
        "no member id": {"member_id": ""},
        "a long member id": {"member_id": "x" * 37},
        "a blank member id": {"member_id": "  "},
        "no group id": {"group_id": ""},
        "an empty rack": {"rack_id": ""},
        "no topics": {"member_id": "n", "subscribed_topic_names": []},
        "an epoch of static members": {"member_epoch": -2},
        "an epoch ahead": {"member_epoch": 9},
        "an old epoch": {"member_epoch": 1},
        "an unknown member": {"member_epoch": 3, "member_id": "n"},
        "an unknown group": {"member_epoch": 3, "group_id": "none"},
    }
    for label, fields in cases.items():
        beat(say, label, "g", **fields)
    ended(say)


def described(say: Recorder) -> None:
    prepared(say)
    for operations in (False, True):
        message = ShareGroupDescribeRequest(group_ids=["g", "none"], include_authorized_operations=operations)
        say.ask("two groups", request(message, 1))
    ended(say)


def fetched(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        topic = prepared(say, records=15)
        ask = partial(fetch, say, version=version)
        speak = partial(ask, max_records=0)
        ask("no session", topic, 1)
        ask("words in a new session", topic, 0, (0, 0, [1]))
        ask("the first", topic, 0, partitions=[0], max_records=5, max_wait_ms=WAIT_MS)
        ask("the next", topic, 1, (0, 4, [1]), max_records=7, max_wait_ms=WAIT_MS)
        ask("a wrong epoch", topic, 7)
        speak("words of all kinds", topic, 2, (5, 9, [0, 1, 2, 3, 2]))
        ask("what was released", topic, 3, max_wait_ms=WAIT_MS)
        speak("words that are not held", topic, 4, (5, 9, [1]))
        speak("words beyond", topic, 5, (20, 20, [1]))
        speak("an unknown type", topic, 6, (10, 10, [9]))
        ask("an unknown topic", NOBODY, 7, partitions=[0])
        ask("an unknown partition", topic, 8, partitions=[9])
        ask("no member", topic, 9, member_id=None)
        if version > 1:
            renewal = {"is_renew_ack": True, "max_bytes": 0, "min_bytes": 0}
            speak("renew", topic, 9, (10, 14, [4]), **renewal)
            ask("renew and fetch", topic, 10, (10, 14, [4]), is_renew_ack=True)
        speak("the last", topic, -1, (10, 14, [1]))
        ask("after the last", topic, -1)
        ended(say)

    return scenario


def strict(say: Recorder) -> None:
    topic = prepared(say, records=15)
    ask = partial(fetch, say, max_wait_ms=WAIT_MS)
    ask("three records", topic, 0, partitions=[0], max_records=3, share_acquire_mode=1)
    ask("four more", topic, 1, (0, 2, [1]), max_records=4, share_acquire_mode=1)
    fetch(say, "release", topic, 2, (3, 6, [2]), max_records=0)
    ask("the rest in pieces", topic, 3, batch_size=1)
    fetch(say, "close", topic, -1)
    ended(say)


def said(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        topic = prepared(say, records=10)
        acknowledge(say, "no session", topic, 1, (0, 0, [1]), version=version)
        fetch(say, "all", topic, 0, version=min(version, 2), partitions=[0], max_wait_ms=WAIT_MS)
        acknowledge(say, "a new session", topic, 0, (0, 0, [1]), version=version)
        acknowledge(say, "accept", topic, 1, (0, 2, [1]), version=version)
        acknowledge(say, "accept again", topic, 2, (0, 2, [1]), version=version)
        acknowledge(say, "of each kind", topic, 3, (3, 5, [0, 2, 3]), version=version)
        acknowledge(say, "what was said", topic, 4, (3, 5, [1]), version=version)
        acknowledge(say, "beyond the end", topic, 5, (6, 12, [1]), version=version)
        acknowledge(say, "out of order", topic, 6, (8, 9, [1]), (6, 7, [1]), version=version)
        acknowledge(say, "two types for three", topic, 7, (6, 8, [1, 1]), version=version)
        acknowledge(say, "no types", topic, 8, (6, 8, []), version=version)
        acknowledge(say, "the last before the first", topic, 9, (8, 6, [1]), version=version)
        acknowledge(say, "an unknown type", topic, 10, (6, 6, [5]), version=version)
        acknowledge(say, "an unknown topic", NOBODY, 11, (6, 6, [1]), version=version)
        acknowledge(say, "an unknown partition", topic, 12, (6, 6, [1]), version=version, partition=9)
        acknowledge(say, "renew", topic, 13, (6, 9, [4]), version=version,
                    **({"is_renew_ack": True} if version > 1 else {}))  # fmt: skip
        acknowledge(say, "a wrong epoch", topic, 99, (6, 6, [1]), version=version)
        acknowledge(say, "the last", topic, -1, (6, 7, [1]), version=version)
        acknowledge(say, "after the last", topic, -1, version=version)
        ended(say)

    return scenario


def offsets(version: int) -> Scenario:
    def scenario(say: Recorder) -> None:
        topic = prepared(say, records=10)

        def describe(label: str) -> None:
            named = [
                ShareOffsetsTopic(topic_name="shared", partitions=[0, 1]),
                ShareOffsetsTopic(topic_name="none", partitions=[0]),
            ]
            for topics in (None, named):
                groups = [ShareOffsetsGroup(group_id=name, topics=topics) for name in ("g", "none")]
                message = DescribeShareGroupOffsetsRequest(groups=groups)
                say.ask(f"{label}, {'all' if topics is None else 'named'} topics", request(message, version))

        describe("before a fetch")
        fetch(say, "all", topic, 0, partitions=[0], max_wait_ms=WAIT_MS)
        acknowledge(say, "accept", topic, 1, (0, 2, [1]))
        acknowledge(say, "accept more", topic, 2, (3, 3, [1]), (5, 5, [1]))
        describe("after words")
        fetch(say, "close", topic, -1)
        ended(say)

    return scenario


def altered(say: Recorder) -> None:
    prepared(say)

    def alter(label: str, group: str, topics: dict[str, dict[int, int]]) -> None:
        rows = [
            AlteredTopic(
                topic_name=name,
                partitions=[
                    AlteredPartition(partition_index=index, start_offset=offset)
                    for index, offset in starts.items()
                ],
            )
            for name, starts in topics.items()
        ]
        say.ask(label, request(AlterShareGroupOffsetsRequest(group_id=group, topics=rows), 0))

    alter("with members", "g", {"shared": {0: 3}})
    beat(say, "leave", "g", -1)
    alter("without members", "g", {"shared": {0: 3, 9: 1}, "none": {0: 1}})
    alter("no group id", "", {"shared": {0: 3}})
    alter("a new group", "fresh", {"shared": {1: 7}})
    say.ask("delete both", request(DeleteGroupsRequest(groups_names=["g", "fresh"]), 2))
    delete_all(say, "shared")


def deleted(say: Recorder) -> None:
    topic = prepared(say, records=5)

    def delete(label: str, group: str, *names: str) -> None:
        topics = [DeletedTopic(topic_name=name) for name in names]
        say.ask(label, request(DeleteShareGroupOffsetsRequest(group_id=group, topics=topics), 0))

    fetch(say, "all", topic, 0, partitions=[0], max_wait_ms=WAIT_MS)
    fetch(say, "close", topic, -1, (0, 4, [1]))
    delete("with members", "g", "shared")
    beat(say, "leave", "g", -1)
    delete("without members", "g", "shared", "none")
    delete("again", "g", "shared")
    delete("no group id", "", "shared")
    delete("an unknown group", "none", "shared")
    say.ask("delete the group", request(DeleteGroupsRequest(groups_names=["g"]), 2))
    delete_all(say, "shared")


SCENARIOS: dict[str, tuple[str, Scenario]] = {
    "share_group_heartbeat_v1_lived": ("a member from its first heartbeat to its last", lived),
    "share_group_heartbeat_v1_refused": ("heartbeats that are refused", refused),
    "share_group_describe_v1_described": ("a group with a member, and none", described),
    "share_fetch_v1_fetched": ("what a member gets", fetched(1)),
    "share_fetch_v2_fetched": ("what a member gets", fetched(2)),
    "share_fetch_v2_strict": ("never more records than asked for, and pieces of batches", strict),
    "share_acknowledge_v1_said": ("what a member says", said(1)),
    "share_acknowledge_v2_said": ("what a member says", said(2)),
    "describe_share_group_offsets_v0_described": ("offsets before and after words", offsets(0)),
    "describe_share_group_offsets_v1_described": ("offsets and lag before and after words", offsets(1)),
    "alter_share_group_offsets_v0_altered": ("offsets that are set", altered),
    "delete_share_group_offsets_v0_deleted": ("offsets that are deleted", deleted),
}
