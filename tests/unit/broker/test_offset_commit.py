"""The OffsetCommit handler: one answer per partition."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.group.group_config import GroupConfig
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from support.broker import make_broker
from support.group_client import GroupClient


@pytest.fixture
def client() -> GroupClient:
    """A client of a broker with one topic of two partitions."""
    client = GroupClient(broker=make_broker(groups=GroupConfig(offset_metadata_max_bytes=4)))
    client.broker.topics.create("t", 2, {})
    return client


def topic_id(client: GroupClient) -> bytes:
    return client.broker.topics.by_name["t"].id


def request(
    *partitions: int, name: str = "t", metadata: str | None = None, **fields: Any
) -> OffsetCommitRequest:
    """Commit offset 5 of each partition."""
    wanted = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=5, committed_metadata=metadata)
        for index in partitions
    ]
    topic_id = fields.pop("topic_id", bytes(16))
    topic = OffsetCommitRequestTopic(name=name, topic_id=topic_id, partitions=wanted)
    return OffsetCommitRequest(group_id="g", topics=[topic], **fields)


def codes(answer: OffsetCommitResponse) -> list[int]:
    return [partition.error_code for topic in answer.topics for partition in topic.partitions]


def committed(client: GroupClient, index: int = 0) -> CommittedOffset | None:
    return client.broker.groups.offsets.offset("g", (topic_id(client), index))


def test_unknown_partitions_do_not_affect_the_others(client: GroupClient) -> None:
    (answer,) = client.post(request(0, 2, -1, 1), 9)

    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes(answer) == [0, unknown, unknown, 0]
    assert committed(client, 1) == committed(client)


def test_an_unknown_topic_is_refused(client: GroupClient) -> None:
    (answer,) = client.post(request(0, name="other"), 9)

    assert codes(answer) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert not client.broker.groups.groups


def test_an_unknown_topic_id_is_refused(client: GroupClient) -> None:
    (answer,) = client.post(request(0, topic_id=b"?" * 16), 10)

    assert codes(answer) == [ErrorCode.UNKNOWN_TOPIC_ID]


@pytest.mark.parametrize(
    ("metadata", "code"), [("1234", 0), ("12345", ErrorCode.OFFSET_METADATA_TOO_LARGE), (None, 0), ("", 0)]
)
def test_metadata_is_bounded(client: GroupClient, metadata: str | None, code: int) -> None:
    (answer,) = client.post(request(0, metadata=metadata), 9)

    assert codes(answer) == [code]


def test_a_refusal_is_returned_for_every_known_partition(client: GroupClient) -> None:
    (answer,) = client.post(request(0, 1, 7, member_id="m", generation_id_or_member_epoch=3), 9)

    assert codes(answer) == [ErrorCode.GROUP_ID_NOT_FOUND] * 2 + [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize("version", [2, 4])
def test_a_retention_time_is_stored_with_the_offset(client: GroupClient, version: int) -> None:
    client.post(request(0, retention_time_ms=60_000), version)

    offset = committed(client)
    assert offset is not None
    assert offset.expire_timestamp_ms == client.clock.now_ms() + 60_000


@pytest.mark.parametrize("version", [2, 5, 9])
def test_without_a_retention_time_the_brokers_applies(client: GroupClient, version: int) -> None:
    client.post(request(0), version)

    offset = committed(client)
    assert offset is not None
    assert (offset.expire_timestamp_ms, offset.commit_timestamp_ms) == (None, client.clock.now_ms())


def test_an_endless_retention_time_does_not_overflow(client: GroupClient) -> None:
    client.post(request(0, retention_time_ms=2**63 - 1), 4)

    offset = committed(client)
    assert offset is not None
    assert offset.expire_timestamp_ms == 2**63 - 1


def test_the_empty_group_id_can_have_offsets(client: GroupClient) -> None:
    asked = request(0)
    asked.group_id = ""

    (answer,) = client.post(asked, 9)

    assert codes(answer) == [0]


def test_an_offset_that_cannot_be_stored_is_refused_and_not_remembered(
    client: GroupClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "disk full")

    monkeypatch.setattr(client.broker.groups.offsets.store, "put_offsets", full)

    (answer,) = client.post(request(0, 1), 9)

    assert codes(answer) == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2
    assert committed(client) is None
