"""The limits of what clients create: each refuses the next one, and lets go of what was deleted."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.broker import Broker, BrokerSettings
from odradek.group.group_config import GroupConfig
from odradek.group.member_sizes import PARTITION_BYTES
from odradek.log.partition_log import PartitionLog
from odradek.log.producer_ids import ProducerIdConfig
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.metadata.store import MetadataStore
from odradek.metadata.transaction_store import SqliteTransactionStore
from odradek.settings.state_limit import StateLimit
from odradek.testing.clock import MockClock
from odradek.transaction.transaction_config import TransactionConfig
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    EntityData,
    OpData,
    RequestEntryData,
)
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from odradek.wire.messages.end_txn import EndTxnRequest
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from odradek.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.batches import batch_of
from support.broker import BrokerClient, make_broker
from support.group_client import DELAY_MS, SESSION_MS, GroupClient

OK, REFUSED = ErrorCode.NONE, ErrorCode.POLICY_VIOLATION


def limit(broker: Broker, kind: str) -> StateLimit:
    return next(each for each in broker.state_limits if each.kind == kind)


def of(broker: Broker, kind: str) -> tuple[int, int]:
    """The present number, and how many were refused."""
    found = limit(broker, kind)
    return found.count(), found.refusals.number


# Topics


def create_topics(client: BrokerClient, **partitions: int) -> list[int]:
    wanted = [
        CreatableTopic(name=name, num_partitions=count, replication_factor=-1)
        for name, count in partitions.items()
    ]
    answer = client.send(CreateTopicsRequest(topics=wanted, timeout_ms=1_000))
    return [row.error_code for row in answer.topics]


def test_topics() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_topics=2)))

    codes = create_topics(client, a=1, b=1, c=1)
    client.send(DeleteTopicsRequest(topics=[DeleteTopicState(name="a")], timeout_ms=1_000))

    assert codes == [OK, OK, REFUSED]
    assert create_topics(client, d=1, e=1) == [OK, REFUSED]
    assert of(client.broker, "topics") == (2, 2)


def test_partitions() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_partitions=10)))

    codes = create_topics(client, a=6, b=5, c=3)
    grown = [grow(client, "c", count) for count in (5, 4)]

    assert codes == [OK, REFUSED, OK]
    assert grown == [REFUSED, OK]
    assert of(client.broker, "partitions") == (10, 2)


def grow(client: BrokerClient, name: str, count: int) -> int:
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    (answer,) = client.send(CreatePartitionsRequest(topics=[topic], timeout_ms=1_000)).results
    code: int = answer.error_code
    return code


def test_topics_that_are_created_by_asking_for_them() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_topics=2)))
    topics = [MetadataRequestTopic(name=name) for name in ("a", "b", "c")]

    answer = client.send(MetadataRequest(topics=topics))

    assert [row.error_code for row in answer.topics] == [OK, OK, REFUSED]


def test_stored_topics_beyond_the_limit_are_loaded(tmp_path: Path) -> None:
    metadata = MetadataStore(tmp_path / "metadata.db")
    client = BrokerClient(make_broker(tmp_path / "logs", metadata=metadata))
    create_topics(client, a=2, b=2, c=2)
    client.broker.logs.close()

    settings = BrokerSettings(max_topics=1, max_partitions=1)
    client = BrokerClient(make_broker(tmp_path / "logs", metadata=metadata, settings=settings))

    assert [each.name for each in client.broker.topics] == ["a", "b", "c"]
    assert create_topics(client, d=1) == [REFUSED]
    assert (of(client.broker, "topics"), of(client.broker, "partitions")) == ((3, 1), (6, 0))


# Groups


def join_classic(client: BrokerClient, group_id: str) -> int:
    request = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    code: int = client.send(request).error_code
    return OK if code == ErrorCode.MEMBER_ID_REQUIRED else code


def join_consumer(client: BrokerClient, group_id: str) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group_id,
        member_id="m",
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=["t"],
        topic_partitions=[],
    )
    code: int = client.send(request).error_code
    return code


def commit(client: BrokerClient, group_id: str, *partitions: int, metadata: str = "") -> int:
    offsets = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata=metadata)
        for index in partitions or [0]
    ]
    topic = OffsetCommitRequestTopic(name="t", partitions=offsets)
    (answer,) = client.send(OffsetCommitRequest(group_id=group_id, topics=[topic]), 9).topics
    codes = {partition.error_code for partition in answer.partitions}
    assert len(codes) == 1
    code: int = codes.pop()
    return code


@pytest.mark.parametrize("create", [join_classic, join_consumer, commit])
def test_groups(create: Any) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=2)))
    client.broker.topics.create("t", 1, {})

    codes = [create(client, group_id) for group_id in ("a", "b", "c", "a")]

    assert codes == [OK, OK, REFUSED, OK]
    assert of(client.broker, "groups") == (2, 1)


def test_a_deleted_group_makes_room() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=1)))
    client.broker.topics.create("t", 1, {})
    commit(client, "a")

    client.send(DeleteGroupsRequest(groups_names=["a"]))

    assert commit(client, "b") == OK


def configure_group(client: BrokerClient, *groups: str) -> list[int]:
    config = AlterableConfig(
        name="consumer.session.timeout.ms", config_operation=ConfigOperation.SET, value="50000"
    )
    resources = [
        AlterConfigsResource(resource_type=ResourceType.GROUP, resource_name=name, configs=[config])
        for name in groups
    ]
    answer = client.send(IncrementalAlterConfigsRequest(resources=resources))
    return [row.error_code for row in answer.responses]


def test_configured_groups() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=2)))

    codes = configure_group(client, "a", "b", "c") + configure_group(client, "a", "d")

    assert codes == [OK, OK, REFUSED, OK, REFUSED]
    assert of(client.broker, "configured groups") == (2, 2)


# Members


def join(
    client: GroupClient, group_id: str, member_id: str = "", metadata: bytes = b"m"
) -> JoinGroupResponse:
    """Join a classic group; the answer of a version that needs no member id, if it is there at once."""
    answers = client.post(client.joining(group_id, member_id, metadata), 3)
    answer = answers[0] if answers else JoinGroupResponse()
    assert isinstance(answer, JoinGroupResponse)
    return answer


def test_members_of_all_groups() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_members=3)))
    client.broker.topics.create("t", 1, {})

    codes = [
        join(client, "a").error_code,
        join(client, "b").error_code,
        join_consumer(client, "c"),
        join(client, "b").error_code,
        join_consumer(client, "d"),
        join_consumer(client, "c"),
        join_classic(client, "e"),
    ]

    assert codes == [OK, OK, OK, REFUSED, REFUSED, OK, REFUSED]
    assert of(client.broker, "group members") == (3, 3)
    assert sorted(group.group_id for group in client.broker.groups) == ["a", "b", "c"]


def test_member_ids_that_are_not_used_count_too() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_members=2)))

    codes = [join_classic(client, "a"), join_classic(client, "a"), join_classic(client, "b")]
    client.clock.advance(SESSION_MS)

    assert codes == [OK, OK, REFUSED]
    assert of(client.broker, "group members") == (0, 1)
    assert join_classic(client, "b") == OK


def test_a_member_that_leaves_makes_room() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_members=1)))
    client.broker.topics.create("t", 1, {})
    join_consumer(client, "c")

    client.send(ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=-1))

    assert join_consumer(client, "d") == OK


def test_the_bytes_of_members() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_member_bytes=1_000)))

    codes = [
        join(client, "a", metadata=b"x" * 600).error_code,
        join(client, "b", metadata=b"x" * 600).error_code,
        join(client, "c", metadata=b"x" * 300).error_code,
    ]

    assert codes == [OK, REFUSED, OK]
    assert of(client.broker, "bytes of group members") == (600 + 300 + 2 * len("range"), 1)


def test_the_bytes_of_assignments() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_member_bytes=1_000)))
    answers = client.post(client.joining("a"), 3)
    client.clock.advance(DELAY_MS)
    (joined,) = answers

    refused, accepted = (
        client.post(
            SyncGroupRequest(
                group_id="a",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=bytes(size))],
            ),
            3,
        )[0].error_code
        for size in (1_000, 500)
    )

    assert (refused, accepted) == (REFUSED, OK)
    assert of(client.broker, "bytes of group members") == (506, 1)


def test_a_large_subscription_of_a_known_member_is_refused() -> None:
    client = GroupClient(make_broker(groups=GroupConfig(max_member_bytes=500)))
    client.broker.topics.create("t", 1, {})
    join_consumer(client, "c")
    (group,) = client.broker.groups
    beat = ConsumerGroupHeartbeatRequest(group_id="c", member_id="m", member_epoch=group.generation)
    larger = replace(beat, subscribed_topic_names=["x" * 1_000])

    codes = [client.send(request).error_code for request in (larger, beat)]

    assert codes == [REFUSED, OK]
    assert of(client.broker, "bytes of group members") == (len("t") + PARTITION_BYTES, 1)


# Offsets


def commits(client: BrokerClient, group_id: str, **metadata: str) -> list[int]:
    """Commit offsets of these partitions (``p0``, ``p1``) with their metadata; return the error codes."""
    offsets = [
        OffsetCommitRequestPartition(
            partition_index=int(name[1:]), committed_offset=1, committed_metadata=text
        )
        for name, text in metadata.items()
    ]
    request = OffsetCommitRequest(
        group_id=group_id, topics=[OffsetCommitRequestTopic(name="t", partitions=offsets)]
    )
    (answer,) = client.send(request, 9).topics
    return [partition.error_code for partition in answer.partitions]


def test_offsets() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_offsets=3)))
    client.broker.topics.create("t", 4, {})

    codes = [
        commits(client, "a", p0="", p1=""),
        commits(client, "b", p0="", p1=""),
        commits(client, "a", p0="", p1="", p2=""),
    ]

    assert codes == [[OK, OK], [OK, REFUSED], [OK, OK, REFUSED]]
    assert of(client.broker, "offsets") == (3, 2)


def test_metadata_of_offsets() -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_offsets_metadata=10)))
    client.broker.topics.create("t", 4, {})

    codes = [
        commits(client, "a", p0="12345", p1="123456"),
        commits(client, "b", p0="12345"),
        commits(client, "a", p0="123456"),
        commits(client, "a", p0="123"),
    ]

    assert codes == [[OK, REFUSED], [OK], [REFUSED], [OK]]
    assert of(client.broker, "characters of offset metadata") == (8, 2)


def pending(client: BrokerClient, who: InitProducerIdResponse, group_id: str, *indexes: int) -> list[int]:
    """Add offsets to a transaction."""
    partitions = [
        TxnOffsetCommitRequestPartition(partition_index=index, committed_offset=1, committed_metadata="x")
        for index in indexes
    ]
    request = TxnOffsetCommitRequest(
        transactional_id="a",
        group_id=group_id,
        producer_id=who.producer_id,
        producer_epoch=who.producer_epoch,
        topics=[TxnOffsetCommitRequestTopic(name="t", partitions=partitions)],
    )
    (answer,) = client.send(request, 5).topics
    return [row.error_code for row in answer.partitions]


@pytest.mark.parametrize(("committed", "left"), [(True, 3), (False, 1)])
def test_offsets_in_transactions(committed: bool, left: int) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_offsets=4)))
    client.broker.topics.create("t", 4, {})
    who = init(client, "a")
    commits(client, "g", p0="xx")

    codes = pending(client, who, "g", 0, 1, 2, 3)
    while_open = of(client.broker, "offsets")
    client.send(
        EndTxnRequest(
            transactional_id="a",
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            committed=committed,
        ),
        3,
    )

    assert codes == [OK, OK, OK, REFUSED]
    assert while_open == (4, 1)
    assert of(client.broker, "offsets") == (left, 1)
    assert of(client.broker, "characters of offset metadata") == (3 if committed else 2, 0)


def test_deleted_offsets_make_room(tmp_path: Path) -> None:
    offsets = SqliteOffsetStore(tmp_path / "metadata.db")
    client = BrokerClient(make_broker(offsets=offsets))
    topic = client.broker.topics.create("t", 4, {})
    client.broker.topics.create("u", 4, {})
    for group_id in ("a", "b", "c"):
        commits(client, group_id, p0="x", p1="xx")
    groups = client.broker.groups

    counts = [of(make_broker(offsets=offsets), "offsets")]
    groups.remove("a")
    counts.append(of(client.broker, "offsets"))
    groups.offsets.delete("b", [(topic.id, 0), (topic.id, 3)])
    counts.append(of(client.broker, "offsets"))
    groups.offsets.drop_topics(lambda topic_id: topic_id != topic.id)

    assert counts == [(6, 0), (4, 0), (3, 0)]
    assert of(client.broker, "offsets") == (0, 0)
    assert of(client.broker, "characters of offset metadata") == (0, 0)


# Transactions


def init(client: BrokerClient, transactional_id: str) -> InitProducerIdResponse:
    answer = client.send(
        InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=60_000), 5
    )
    assert isinstance(answer, InitProducerIdResponse)
    return answer


def test_transactional_ids() -> None:
    client = BrokerClient(make_broker(transaction_config=TransactionConfig(max_ids=2)))

    codes = [init(client, name).error_code for name in ("a", "b", "c", "a")]

    assert codes == [OK, OK, REFUSED, OK]
    assert of(client.broker, "transactional ids") == (2, 1)


def test_an_expired_transactional_id_makes_room() -> None:
    config = TransactionConfig(max_ids=1, transactional_id_expiration_ms=1_000)
    client = BrokerClient(make_broker(transaction_config=config))
    init(client, "a")

    clock = client.broker.clock
    assert isinstance(clock, MockClock)
    clock.advance(config.remove_expired_interval_ms)

    assert init(client, "b").error_code == OK


def add_partitions(client: BrokerClient, name: str, who: InitProducerIdResponse, *indexes: int) -> list[int]:
    topic = AddPartitionsToTxnTopic(name="t", partitions=list(indexes))
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.producer_epoch,
        v3_and_below_topics=[topic],
    )
    (answer,) = client.send(request, 3).results_by_topic_v3_and_below
    return [row.partition_error_code for row in answer.results_by_partition]


def test_partitions_in_transactions() -> None:
    client = BrokerClient(make_broker(transaction_config=TransactionConfig(max_partitions=3)))
    client.broker.topics.create("t", 4, {})
    a, b = init(client, "a"), init(client, "b")

    added = [
        add_partitions(client, "a", a, 0, 1),
        add_partitions(client, "b", b, 0, 1),
        add_partitions(client, "a", a, 1, 2),
    ]

    assert added == [[OK, OK], [REFUSED, REFUSED], [OK, OK]]
    assert of(client.broker, "partitions in transactions") == (3, 1)


def test_a_transaction_that_ends_frees_its_partitions(tmp_path: Path) -> None:
    transactions = SqliteTransactionStore(tmp_path / "metadata.db")
    client = BrokerClient(make_broker(transactions=transactions))
    client.broker.topics.create("t", 4, {})
    who = init(client, "a")
    add_partitions(client, "a", who, 0, 1, 2)
    restarted = make_broker(transactions=transactions)

    client.send(
        EndTxnRequest(
            transactional_id="a",
            producer_id=who.producer_id,
            producer_epoch=who.producer_epoch,
            committed=True,
        ),
        3,
    )

    assert of(restarted, "partitions in transactions") == (3, 0)
    assert of(client.broker, "partitions in transactions") == (0, 0)


# Producers


def test_producer_ids_are_counted_once_per_partition() -> None:
    broker = make_broker(producer_ids=ProducerIdConfig(max_ids=3))
    topic = broker.topics.create("t", 2, {})

    codes = [
        append(broker, log, producer_id)
        for log, producer_id in zip(
            (*topic.partitions, *topic.partitions, topic.partitions[0]), (1, 1, 2, 2, 1), strict=True
        )
    ]

    assert codes == [OK, OK, OK, REFUSED, OK]
    assert of(broker, "producer ids") == (3, 1)


def append(broker: Broker, log: PartitionLog, producer_id: int) -> int:
    """Append the next batch of an idempotent producer; return the error code."""
    known = log.producers.producers.get(producer_id)
    sequence = 0 if known is None else known.last_sequence + 1
    batch = batch_of(b"v", producer=(producer_id, 0, sequence))
    try:
        log.append(batch, broker.clock.now_ms())
    except ApiError as error:
        return error.code
    return OK


def test_a_deleted_topic_and_expired_producers_make_room() -> None:
    broker = make_broker(producer_ids=ProducerIdConfig(max_ids=2, expiration_ms=10_000))
    first, second = broker.topics.create("a", 1, {}), broker.topics.create("b", 1, {})
    append(broker, first.partitions[0], 1)
    append(broker, second.partitions[0], 2)

    broker.topics.delete(first)
    after_deletion = of(broker, "producer ids")
    second.partitions[0].producers.expire(broker.clock.now_ms() + 10_000)

    assert (after_deletion, of(broker, "producer ids")) == ((1, 0), (0, 0))


def test_producers_are_counted_again_after_a_restart(tmp_path: Path) -> None:
    metadata = MetadataStore(tmp_path / "metadata.db")
    broker = make_broker(tmp_path / "logs", metadata=metadata)
    log = broker.topics.create("a", 1, {}).partitions[0]
    for producer_id in range(5):
        append(broker, log, producer_id)
    broker.logs.close()

    config = ProducerIdConfig(max_ids=4)
    again = make_broker(tmp_path / "logs", metadata=metadata, producer_ids=config)

    assert of(broker, "producer ids") == (0, 0)
    assert of(again, "producer ids") == (5, 0)
    log = again.topics.log("a", 0)
    assert [append(again, log, producer_id) for producer_id in (4, 5)] == [OK, REFUSED]


# Users and quotas


def set_password(client: BrokerClient, *users: str) -> list[int]:
    changes = [
        ScramCredentialUpsertion(
            name=user, mechanism=1, iterations=4096, salt=b"salt", salted_password=b"p" * 32
        )
        for user in users
    ]
    answer = client.send(AlterUserScramCredentialsRequest(upsertions=changes))
    return [row.error_code for row in answer.results]


def test_users() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_users=2)))

    codes = set_password(client, "a", "b", "c") + set_password(client, "b", "d")

    assert codes == [OK, OK, REFUSED, OK, REFUSED]
    assert of(client.broker, "SCRAM users") == (2, 2)


def set_quota(client: BrokerClient, *users: str, validate_only: bool = False) -> list[int]:
    entries = [
        RequestEntryData(
            entity=[EntityData(entity_type="user", entity_name=user)],
            ops=[OpData(key="producer_byte_rate", value=1.0)],
        )
        for user in users
    ]
    answer = client.send(AlterClientQuotasRequest(entries=entries, validate_only=validate_only))
    return [row.error_code for row in answer.entries]


def test_quota_entities() -> None:
    client = BrokerClient(make_broker(settings=BrokerSettings(max_client_quotas=2)))

    codes = set_quota(client, "a", "b", "c", validate_only=True) + set_quota(client, "a", "b", "c")

    assert codes == [OK, OK, REFUSED] * 2
    assert set_quota(client, "b") == [OK]
    assert of(client.broker, "quota entities") == (2, 2)


# Names

LONG = "x" * 1_025


def test_a_long_client_id_is_refused_by_every_api() -> None:
    client = BrokerClient(client_id=LONG)

    answers = [
        client.send(ApiVersionsRequest(client_software_name="a", client_software_version="1")),
        client.send(GetTelemetrySubscriptionsRequest(client_instance_id=bytes(16))),
    ]

    assert [answer.error_code for answer in answers] == [REFUSED, ErrorCode.INVALID_REQUEST]
    assert not client.broker.telemetry.instances()
    assert client.broker.names.refusals.number == 2


def test_long_names_create_nothing() -> None:
    client = BrokerClient()
    client.broker.topics.create("t", 1, {})

    codes = [
        join_classic(client, LONG),
        join_consumer(client, LONG),
        commit(client, LONG),
        *configure_group(client, LONG),
        init(client, LONG).error_code,
        *set_password(client, LONG),
        *set_quota(client, LONG),
        client.send(ApiVersionsRequest(client_software_name=LONG, client_software_version="1")).error_code,
    ]

    assert codes == [REFUSED] * 8
    present = {limit.kind for limit in client.broker.state_limits if limit.count()}
    assert present == {"topics", "partitions"}


def test_the_setting_is_named() -> None:
    client = BrokerClient(client_id=LONG)

    answer = client.send(DescribeClusterRequest())

    assert answer.error_message == "name.max.length allows 1024 characters: the client id has 1025."


def test_a_stored_group_with_a_long_name_goes_on() -> None:
    client = BrokerClient()
    client.broker.topics.create("t", 1, {})
    client.broker.groups.make_simple_group(LONG)

    assert [join_classic(client, LONG), commit(client, LONG)] == [OK, OK]


# The log


def test_refusals_are_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    client = BrokerClient(make_broker(groups=GroupConfig(max_groups=1)))
    client.broker.topics.create("t", 1, {})
    commit(client, "a")
    clock = client.broker.clock
    assert isinstance(clock, MockClock)

    with caplog.at_level(logging.WARNING):
        for _ in range(25):
            commit(client, "b")
            clock.advance(5_000)

    assert [row.__dict__["refused"] for row in caplog.records] == [1, 13, 25]
    assert {row.__dict__["setting"] for row in caplog.records} == {"groups.max"}
