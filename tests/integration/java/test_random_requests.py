"""Random requests of every API in every version to a host and to Apache Kafka: the answers are the same.

Each request stands for itself. `test_random_scripts.py` compares what follows from several ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from random import Random
from typing import Any, Final

import pytest
from contrib.capture.kafka_node import TELEMETRY_MAX_BYTES, kafka_node

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest
from odradek.wire.messages.describe_groups import DescribeGroupsRequest
from odradek.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsRequest
from odradek.wire.messages.describe_transactions import DescribeTransactionsRequest
from odradek.wire.messages.find_coordinator import FindCoordinatorRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from random_messages import declared_versions
from support.data_requests import produce_request
from support.hosts import running_host
from support.random_requests import BATCH, GROUP, NEW, TOPIC_IDS, TOPICS, RequestMaker
from support.random_script import MISSING_CONFIGS, in_common
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

EACH: Final = 12
"""Requests of each version."""
UNANSWERED_S: Final = 6
OF_GROUPS, OF_TRANSACTIONS = 0, 1
NOT_YET: Final = frozenset(
    {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}
)
OF_TOPICS: Final = ("CreateTopicsRequest", "CreatePartitionsRequest", "DeleteTopicsRequest")
"""They come last: the others need the topics."""
ELSEWHERE: Final = (*("ApiVersions", "SaslHandshake", "SaslAuthenticate", "GetTelemetry", "PushTelemetry"),)
"""What these answer depends on the connection, or is ours to say."""
OF_BROKERS: Final = 4
"""The first version of AddPartitionsToTxn that only brokers send."""
OURS: Final = ("__", NEW, "streams.", *MISSING_CONFIGS)
"""Names of internal topics, of groups that only one side lists, and of configurations."""
UNLIKE: Final = frozenset({"log_dir", "total_bytes", "usable_bytes", "next_cursor"})


class Side:
    """One of the two brokers, with the topics and the group that requests name."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.client: WireClient | None = None
        self.ids: dict[bytes, bytes] = {}

    def connected(self) -> WireClient:
        if self.client is None:
            self.client = WireClient(("127.0.0.1", self.port), timeout_s=UNANSWERED_S)
        return self.client

    def prepare(self) -> None:
        """Create topics, a record and an offset, as if nothing had been there before."""
        client = self.connected()
        for key_type in (OF_GROUPS, OF_TRANSACTIONS):
            wait_until(partial(self.has_coordinator, key_type), "a coordinator")
        client.send(DeleteTopicsRequest(topic_names=list(TOPICS), timeout_ms=30_000), 5)
        new = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        for result in client.send(CreateTopicsRequest(topics=new, timeout_ms=30_000)).topics:
            assert not result.error_code, result
            self.ids[TOPIC_IDS[result.name]] = result.topic_id
        named = [MetadataRequestTopic(name=name) for name in TOPICS]
        wait_until(partial(self.takes, MetadataRequest(topics=named), 9), "leaders")
        wait_until(partial(self.takes, produce_request("alpha", BATCH), 9), "a record")
        row = OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [OffsetCommitRequestTopic(name="alpha", partitions=[row])]
        assert self.takes(OffsetCommitRequest(group_id=GROUP, topics=topics), 9)

    def takes(self, request: Any, version: int) -> bool:
        """Whether the answer has no error."""
        return not any(error_codes(self.connected().send(request, version)))

    def has_coordinator(self, key_type: int) -> bool:
        """Kafka creates its internal topics with the first question, and elects their leaders later."""
        client = self.connected()
        if not self.takes(FindCoordinatorRequest(key="any", key_type=key_type), 3):
            return False
        asked: Any = DescribeGroupsRequest(groups=["any"])
        if key_type == OF_TRANSACTIONS:
            asked = DescribeTransactionsRequest(transactional_ids=["any"])
        answers = client.send(asked), client.send(InitProducerIdRequest(transactional_id=None), 4)
        return NOT_YET.isdisjoint(error_codes(list(answers)))

    def answer(self, request: Any, version: int) -> Any:
        """The answer without what only this side says; the reason if there is none."""
        client = self.connected()
        frame = client.frame(request, version)
        for stand_in, topic_id in self.ids.items():
            frame = frame.replace(stand_in, topic_id)
        try:
            client.send_bytes(frame)
            return comparable(in_common(client.answer(request, version)))
        except (ConnectionError, TimeoutError) as error:
            self.close()
            return type(error).__name__

    def close(self) -> None:
        if self.client is not None:
            self.client.socket.close()
            self.client = None


def error_codes(answer: Any) -> Iterator[int]:
    """All errors in an answer."""
    if isinstance(answer, list):
        for each in answer:
            yield from error_codes(each)
    for name in getattr(type(answer), "__slots__", ()):
        value = getattr(answer, name)
        if name.endswith("error_code") and value:
            yield int(value)
        else:
            yield from error_codes(value)


def comparable(part: Any) -> Any:
    """A part of an answer without directories and names that only one side has."""
    if isinstance(part, dict):
        return {name: comparable(value) for name, value in part.items() if name not in UNLIKE}
    if isinstance(part, list):
        return [comparable(each) for each in part if not name_of(each).startswith(OURS)]
    return part


def name_of(part: Any) -> str:
    """The name of an element of an answer."""
    if not isinstance(part, dict):
        return ""
    names = ("name", "topic", "topic_name", "resource_name", "group_id")
    return str(next((part[name] for name in names if name in part), ""))


def requests(seed: int) -> Iterator[tuple[Any, int]]:
    """Requests of every API, those that change topics last."""
    maker = RequestMaker(Random(seed), made=seed * 1_000_000)
    compared = [
        (cls, version)
        for cls, version in declared_versions()
        if cls.__name__.endswith("Request") and not cls.__name__.startswith(ELSEWHERE)
        if not (cls.__name__ == "AddPartitionsToTxnRequest" and version >= OF_BROKERS)
    ]
    for cls, version in sorted(compared, key=lambda each: each[0].__name__ in OF_TOPICS):
        for _ in range(EACH):
            yield answerable(maker.message(cls, version)), version


def answerable(request: Any) -> Any:
    """A request that Kafka answers: it waits for ever for the offset of a partition that no group reads."""
    if isinstance(request, DescribeShareGroupOffsetsRequest):
        for group in request.groups:
            if group.topics:
                group.topics = [each for each in group.topics if each.topic_name not in TOPICS]
    return request


def differences(ours: Side, theirs: Side, asked: Iterable[tuple[Any, int]]) -> Iterator[Any]:
    """The requests whose answers differ, with both answers."""
    for request, version in asked:
        answers = [side.answer(request, version) for side in (ours, theirs)]
        if answers[0] != answers[1]:
            yield request, version, *answers


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    """A host and a node of Kafka that create no topics by themselves, and remove no segments meanwhile."""
    settings = ("auto.create.topics.enable=false", "group.initial.rebalance.delay.ms=0")
    ours = (*settings, f"telemetry.max.bytes={TELEMETRY_MAX_BYTES}")
    theirs = (*settings, "log.initial.task.delay.ms=3600000")
    with kafka_node(overrides=theirs) as kafka, running_host(tmp_path_factory.mktemp("host"), *ours) as host:
        pair = Side(host.address[1]), Side(kafka.port)
        yield pair
        for side in pair:
            side.close()


@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(2, 11))]
)
def test_random_requests_are_answered_as_by_kafka(seed: int, sides: tuple[Side, Side]) -> None:
    for side in sides:
        side.prepare()

    assert list(differences(*sides, requests(seed))) == []
