"""Requests with many elements: their work is spread over turns of the loop, and their answers are the same.

Each array of each API is filled in turn. One broker does all work of a request in one turn, another one has a
clock on which a turn ends after ten steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.config_entry import ConfigEntry
from odradek.broker.dispatch.routes import Routes
from odradek.broker.dynamic_config import DynamicConfig
from odradek.broker.features import SHARE_VERSION
from odradek.broker.handlers import describe_configs, fetch
from odradek.plugin.authorizer import (
    CLUSTER_NAME,
    AclOperation,
    Action,
    Authorizer,
    Decision,
)
from odradek.plugin.authorizer import ResourceType as AclType
from odradek.plugin.context import RequestContext
from odradek.testing.clock import MockClock
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.layout import layout
from odradek.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from support.batches import batch_of
from support.broker import BrokerClient, make_broker
from support.element_requests import Contents, Filling, Names, Topic, arrays
from support.ticking_clock import TickingClock

ELEMENTS = 24
PARTITIONS = 24
EXISTING = 15
"""Topics and groups: more than fit into a turn of ten steps."""
NOT_IN_STEPS = {
    # Filters and declarations: an element costs a look into a set, or as much as reading it.
    "ConsumerGroupHeartbeat subscribed_topic_names",
    "ConsumerGroupHeartbeat topic_partitions",
    "ConsumerGroupHeartbeat topic_partitions.partitions",
    "ShareGroupHeartbeat subscribed_topic_names",
    "DescribeClientQuotas components",
    "DescribeConfigs resources.configuration_keys",
    "ShareFetch forgotten_topics_data",
    "ShareFetch forgotten_topics_data.partitions",
    "Fetch forgotten_topics_data",
    "Fetch forgotten_topics_data.partitions",
    "JoinGroup protocols",
    "ListConfigResources resource_types",
    "ListGroups states_filter",
    "ListGroups types_filter",
    "ListPartitionReassignments topics",
    "ListPartitionReassignments topics.partition_indexes",
    "ListTransactions producer_id_filters",
    "ListTransactions state_filters",
    "SyncGroup assignments",
    "UpdateFeatures feature_updates",
    # Refused at once: there is no share session.
    "ShareAcknowledge topics",
    "ShareAcknowledge topics.partitions",
    "ShareAcknowledge topics.partitions.acknowledgement_batches",
    "ShareAcknowledge topics.partitions.acknowledgement_batches.acknowledge_types",
    "ShareFetch topics",
    "ShareFetch topics.partitions",
    "ShareFetch topics.partitions.acknowledgement_batches",
    "ShareFetch topics.partitions.acknowledgement_batches.acknowledge_types",
    # Refused at once: there is no share group.
    "DeleteShareGroupOffsets topics",
    # Refused at once: there is no authorizer.
    "CreateAcls creations",
    "DeleteAcls filters",
    # One thing with many parts, which is changed as a whole.
    "CreateTopics topics.assignments",
    "CreateTopics topics.assignments.broker_ids",
    "CreateTopics topics.configs",
    "CreatePartitions topics.assignments",
    "CreatePartitions topics.assignments.broker_ids",
    "AlterConfigs resources.configs",
    "AlterClientQuotas entries.entity",
    "AlterClientQuotas entries.ops",
    "AddPartitionsToTxn transactions.topics",
    "AddPartitionsToTxn transactions.topics.partitions",
    "AlterPartitionReassignments topics.partitions.replicas",
    "IncrementalAlterConfigs resources.configs",
}


AS_A_WHOLE = {"StreamsGroupHeartbeat", "StreamsGroupTopologyDescriptionUpdate"}
"""The parts of one topology, which fit together or not, and the few things that a member says of itself."""


def every_array() -> list[tuple[type[Any], int, str]]:
    """Request, newest version and path of each array that is worked on in steps."""
    return [
        (route.request, route.versions.last, path)
        for _, route in sorted(Routes().items())
        for path, _ in arrays(layout(route.request, route.versions.last))
        if f"{route.request.__name__.removesuffix('Request')} {path}" not in NOT_IN_STEPS
        and route.request.__name__.removesuffix("Request") not in AS_A_WHOLE
    ]


ASKS_FOR_TOPICS = {
    "ConsumerGroupDescribe",
    "CreatePartitions",
    "CreateTopics",
    "DeleteRecords",
    "DeleteTopics",
    "DescribeConfigs",
    "DescribeProducers",
    "DescribeTopicPartitions",
    "Fetch",
    "IncrementalAlterConfigs",
    "ListOffsets",
    "Metadata",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "TxnOffsetCommit",
}


class NoTopics:
    """Grants everything but rights to topics; to the admin everything."""

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        return [
            Decision(
                context.connection.principal == "User:ADMIN"
                or (action.resource_type is not AclType.TOPIC and action.name != CLUSTER_NAME)
            )
            for action in actions
        ]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: AclType
    ) -> Decision:
        return Decision(is_allowed=True)


def filled(clock: MockClock, authorizer: Authorizer | None = None) -> tuple[BrokerClient, Contents]:
    """A broker with topics and groups."""
    client = BrokerClient(make_broker(clock=clock, authorizer=authorizer))
    client.connection.principal = "User:ADMIN"
    client.broker.features.finalize(SHARE_VERSION, 2)
    names = ["wide", *[f"topic-{i}" for i in range(EXISTING)]]
    topics = [
        CreatableTopic(name=name, num_partitions=PARTITIONS if name == "wide" else 1, replication_factor=1)
        for name in names
    ]
    created = answer(client, CreateTopicsRequest(topics=topics), 7)
    known = [Topic(topic.name, topic.topic_id, topic.num_partitions) for topic in created.topics]
    groups = [f"group-{i}" for i in range(EXISTING)]
    for group in groups:
        offsets = [OffsetCommitRequestPartition(partition_index=i) for i in range(2)]
        commit = OffsetCommitRequestTopic(topic_id=known[0].id, partitions=offsets)
        answer(
            client, OffsetCommitRequest(group_id=group, generation_id_or_member_epoch=-1, topics=[commit]), 10
        )
    answer(client, InitProducerIdRequest(transactional_id="id-0", transaction_timeout_ms=60_000), 4)
    client.connection.principal = "User:ANONYMOUS"
    return client, Contents(
        topics=known,
        groups=groups,
        users=[f"user-{i}" for i in range(ELEMENTS)],
        clients=[f"client-{i}" for i in range(ELEMENTS)],
        transactional_ids=["id-0", "id-1"],
        batch=batch_of(b"value"),
    )


def answer(client: BrokerClient, request: Any, version: int) -> Any:
    """The answer, after as many turns as it takes."""
    answered = client.defer(request, version)
    clock = client.broker.clock
    assert isinstance(clock, MockClock)
    clock.advance(0)
    return answered()


def comparable(response: Any) -> Any:
    """The response without what differs between two hosts."""
    for result in getattr(response, "results", []):
        if hasattr(result, "log_dir"):
            result.log_dir, result.usable_bytes = "", 0
    return response


@pytest.mark.parametrize(
    ("request_type", "version", "path"),
    [pytest.param(*each, id=f"{each[0].__name__}-{each[2]}") for each in every_array()],
)
def test_many_elements_take_several_turns_and_change_nothing_in_the_answer(
    request_type: type[Any], version: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_turns(request_type, version, path, monkeypatch, None)


@pytest.mark.parametrize(
    ("request_type", "version", "path"),
    [
        pytest.param(*each, id=f"{each[0].__name__}-{each[2]}")
        for each in every_array()
        if each[0].__name__.removesuffix("Request") in ASKS_FOR_TOPICS
    ],
)
def test_many_refused_elements_take_several_turns(
    request_type: type[Any], version: int, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_turns(request_type, version, path, monkeypatch, NoTopics())


def check_turns(
    request_type: type[Any],
    version: int,
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    authorizer: Authorizer | None,
) -> None:
    """Check that a request takes several turns, and that its answer is the same as in one turn."""
    quick, contents = filled(MockClock(), authorizer)
    slow, same = filled(TickingClock(), authorizer)
    # on the clock of the test a turn has ten steps, so fewer elements are many
    monkeypatch.setattr(fetch, "AT_A_TIME", 10)
    shape = layout(request_type, version)
    before = slow.broker.steps.deferred

    for names in (Names.KNOWN, Names.UNKNOWN):
        expected, got = (
            answer(
                client,
                Filling(request_type, existing, names, path, ELEMENTS).structure(shape, "", 0, False),
                version,
            )
            for client, existing in ((quick, contents), (slow, same))
        )
        assert comparable(got) == comparable(expected)

    assert quick.dispatcher.unexpected_errors == slow.dispatcher.unexpected_errors == 0
    assert quick.broker.steps.deferred == 0
    assert slow.broker.steps.deferred > before


def described(clock: MockClock, times: int, max_bytes: int = 1_000_000) -> tuple[BrokerClient, Any]:
    """Describe a broker several times in one request."""
    settings = BrokerSettings(response_max_bytes=max_bytes)
    client = BrokerClient(make_broker(clock=clock, settings=settings))
    return client, answer(client, broker_described(times), 4)


def broker_described(times: int) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(
        resource_type=ResourceType.BROKER, resource_name="1", configuration_keys=None
    )
    return DescribeConfigsRequest(resources=[resource] * times)


def test_a_resource_that_is_named_many_times_is_described_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    entry = DynamicConfig.entry

    def counted(self: DynamicConfig, name: str) -> ConfigEntry:
        calls.append(name)
        return entry(self, name)

    monkeypatch.setattr(DynamicConfig, "entry", counted)

    client, response = described(MockClock(), 20)

    assert len(response.results) == 20
    assert len({str(result) for result in response.results}) == 1
    assert len(calls) == len(client.broker.config.shown_keys())


def test_few_keys_of_a_resource_are_described_in_a_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TickingClock()
    client = BrokerClient(make_broker(clock=clock))
    keys: dict[str, list[int]] = {"entry": [], "shown": []}

    def counted(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*given: Any) -> Any:
            keys[name].append(client.broker.steps.turns)
            return call(*given)

        return counting

    monkeypatch.setattr(DynamicConfig, "entry", counted("entry", DynamicConfig.entry))
    monkeypatch.setattr(describe_configs, "shown", counted("shown", describe_configs.shown))

    response = answer(client, broker_described(1), 4)

    for turns in keys.values():
        assert len(turns) == len(response.results[0].configs)
        assert max(Counter(turns).values()) <= 10


def test_a_refusal_does_not_compare_all_resources_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[int] = []
    named = describe_configs.named

    def counting(resources: Any) -> Any:
        compared.append(len(resources))
        return named(resources)

    monkeypatch.setattr(describe_configs, "named", counting)

    _, response = described(TickingClock(), 1_700, 100_000)

    assert [result.error_code for result in response.results] == [ErrorCode.POLICY_VIOLATION]
    assert compared == [500, 500, 500, 200, 1]


def test_a_request_whose_answer_would_be_too_large_is_refused() -> None:
    client, response = described(TickingClock(), 200, 100_000)

    assert [result.error_code for result in response.results] == [ErrorCode.POLICY_VIOLATION]
    assert "larger than 100000 bytes" in response.results[0].error_message
    assert client.broker.large_responses_refused == 1


def test_a_large_answer_within_the_bound_is_complete() -> None:
    _, response = described(TickingClock(), 20)

    assert [result.error_code for result in response.results] == [ErrorCode.NONE] * 20
    assert response == described(MockClock(), 20)[1]


def group_of(clock: MockClock, members: int) -> tuple[BrokerClient, str]:
    """A group of the consumer protocol."""
    client, contents = filled(clock)
    for number in range(members):
        joining = ConsumerGroupHeartbeatRequest(
            group_id="many",
            member_id=f"m{number}",
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[topic.name for topic in contents.topics],
            topic_partitions=[],
        )
        assert answer(client, joining, 1).error_code == ErrorCode.NONE
    return client, "many"


def test_a_large_group_is_described_member_by_member() -> None:
    quick, name = group_of(MockClock(), 30)
    slow, _ = group_of(TickingClock(), 30)
    before = slow.broker.steps.turns
    request = ConsumerGroupDescribeRequest(group_ids=[name])

    expected, got = answer(quick, request, 1), answer(slow, request, 1)

    (group,), (quick_group,) = got.groups, expected.groups
    assert [member.member_id for member in group.members] == [f"m{number}" for number in range(30)]
    assert {topic.topic_name for topic in group.members[0].assignment.topic_partitions}
    assert [member.subscribed_topic_names for member in group.members] == [
        member.subscribed_topic_names for member in quick_group.members
    ]
    assert slow.broker.steps.turns - before >= 3


def test_all_offsets_of_a_group_are_fetched_topic_by_topic() -> None:
    quick, contents = filled(MockClock())
    slow, same = filled(TickingClock())
    answers = []
    for client, existing in ((quick, contents), (slow, same)):
        commits = [
            OffsetCommitRequestTopic(topic_id=topic.id, partitions=[OffsetCommitRequestPartition()])
            for topic in existing.topics
        ]
        answer(
            client, OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=commits), 10
        )
        group = OffsetFetchRequestGroup(group_id="g", topics=None)
        before = client.broker.steps.turns
        answers.append(answer(client, OffsetFetchRequest(groups=[group]), 10))

    assert answers[0] == answers[1]
    assert [len(topic.partitions) for topic in answers[0].groups[0].topics] == [1] * len(contents.topics)
    assert slow.broker.steps.turns - before >= len(contents.topics) // 10
