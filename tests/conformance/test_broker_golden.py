"""Apache Kafka's answers about topics, records and groups, replayed against a broker in memory.

The test replays the ids of topics, sessions and producers that Kafka drew, in Kafka's order, and sorts fields
that have no order in Kafka. `DIFFERENT` lists the exchanges with an intended difference, and its reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from conformance.test_client_metrics_configs_golden import decoded
from odradek.broker.broker import Broker
from odradek.broker.configs.topic_resource import KEYS as TOPIC_KEYS
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import CloseConnection, Routes
from odradek.broker.dynamic_config import RATE_KEYS
from odradek.broker.kafka_keys import NEVER_SHOWN, kafka_keys
from odradek.programs.config import HostConfig
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import decode
from odradek.wire.config_resource import ConfigSource
from odradek.wire.header import flexible_request_header, read_response_header
from odradek.wire.messages.alter_client_quotas import AlterClientQuotasResponse
from odradek.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsResponse
from odradek.wire.messages.create_partitions import CreatePartitionsResponse
from odradek.wire.messages.create_topics import (
    CreatableTopicConfigs,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.messages.delete_acls import DeleteAclsResponse
from odradek.wire.messages.delete_groups import DeleteGroupsResponse
from odradek.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsResponse
from odradek.wire.messages.delete_topics import DeleteTopicsResponse
from odradek.wire.messages.describe_acls import DescribeAclsResponse
from odradek.wire.messages.describe_client_quotas import DescribeClientQuotasResponse
from odradek.wire.messages.describe_configs import (
    DescribeConfigsResponse,
)
from odradek.wire.messages.describe_quorum import DescribeQuorumResponse
from odradek.wire.messages.describe_share_group_offsets import DescribeShareGroupOffsetsResponse
from odradek.wire.messages.elect_leaders import ElectLeadersResponse
from odradek.wire.messages.fetch import FetchResponse
from odradek.wire.messages.find_coordinator import FindCoordinatorResponse
from odradek.wire.messages.init_producer_id import InitProducerIdResponse
from odradek.wire.messages.offset_commit import OffsetCommitResponse
from odradek.wire.messages.produce import ProduceResponse
from odradek.wire.messages.share_acknowledge import ShareAcknowledgeResponse
from odradek.wire.messages.share_fetch import ShareFetchResponse
from odradek.wire.messages.share_group_describe import ShareGroupDescribeResponse
from odradek.wire.messages.share_group_heartbeat import ShareGroupHeartbeatResponse
from odradek.wire.messages.txn_offset_commit import TxnOffsetCommitResponse
from odradek.wire.types import NIL_UUID
from support.acls import standard_authorizer
from support.broker import make_broker, make_connection
from support.golden import GOLDEN, NEWEST, OLDER, VERSIONS, Exchange, exchanges, golden_files, golden_id
from support.headers import peek_api, read_request_header

APIS = (
    "alter_client_quotas",
    "alter_partition_reassignments",
    "alter_share_group_offsets",
    "consumer_group_heartbeat",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_groups",
    "delete_share_group_offsets",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_producers",
    "describe_quorum",
    "describe_share_group_offsets",
    "describe_topic_partitions",
    "describe_user_scram_credentials",
    "elect_leaders",
    "fetch",
    "find_coordinator",
    "join_group",
    "leave_group",
    "list_offsets",
    "list_partition_reassignments",
    "offset_commit",
    "offset_for_leader_epoch",
    "produce",
    "share_acknowledge",
    "share_fetch",
    "share_group_describe",
    "share_group_heartbeat",
    "sync_group",
    "txn_offset_commit",
    "update_features",
)
CONFIGS = (
    "describe_configs_v4_broker",
    "describe_configs_v4_topic",
    "incremental_alter_configs_v1_broker",
    "incremental_alter_configs_v1_broker_refused",
    "incremental_alter_configs_v1_quotas",
    "incremental_alter_configs_v1_quotas_refused",
    "incremental_alter_configs_v1_replicas",
    "incremental_alter_configs_v1_topic",
)
FILES = golden_files(*(f"{api}_v*" for api in APIS), *CONFIGS)
LISTENERS_KEY = "listener.name.plaintext.max.connections"
OUR_KEYS = {LISTENERS_KEY} | HostConfig().start_values.keys() | RATE_KEYS.keys() | TOPIC_KEYS.keys()

NODES_OWN = frozenset(
    {
        "advertised.listeners",
        "group.initial.rebalance.delay.ms",
        "listener.security.protocol.map",
        "listeners",
        "log.dirs",
        "node.id",
        "telemetry.max.bytes",
    }
)
"""Keys that the recorded node was given."""
OTHER_DEFAULTS = frozenset(
    {"queued.max.request.bytes", "sasl.enabled.mechanisms", "ssl.keystore.type", "ssl.truststore.type"}
)
"""Keys whose default here is not Kafka's: no limit, GSSAPI and JKS there."""
READ_ONLY = frozenset(
    {
        "group.consumer.assignment.interval.ms",
        "log.cleaner.backoff.ms",
        "log.cleaner.dedupe.buffer.size",
        "producer.id.expiration.ms",
        "ssl.cipher.suites",
        "ssl.client.auth",
        "ssl.enabled.protocols",
    }
)
"""Keys that Kafka changes at run time and this host does not."""
ADDED = frozenset(
    {
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.group.enable",
        "errors.deadletterqueue.topic.name.prefix",
        "max.decompressed.message.bytes",
    }
)
"""Keys that only the newest Kafka has."""
RECORDED_MS = 1_795_169_000_000
"""The approximate time of the recording: whether a record is too old depends on it."""
PLACED_AS_ONE = "the time of a duplicate is that of its batch; we say that the topic does not set it"
OVERRIDES = "max.connections.per.ip.overrides"
DIFFERENT: dict[tuple[str, str], str] = {
    **{
        ("incremental_alter_configs_v1_quotas_refused", f"SET {OVERRIDES}={value} on '{name}'"): (
            "our own words for a list that cannot be read"
        )
        for name in ("1", "")
        for value in ("localhost", "a b:3")
    },
    ("create_topics_v7_created", "validateOnly"): "a topic that is not created has no id",
    ("produce_v11_odd", "the smallest batch alone"): "CORRUPT_MESSAGE, where Kafka reads past the end",
    ("produce_v13_produced", "a transactional batch"): "without a producer it is in no transaction either",
    ("produce_v13_idempotent", "the same again"): PLACED_AS_ONE,
    ("produce_v13_idempotent", "five back"): PLACED_AS_ONE,
    **{
        (f"txn_offset_commit_v{version}_committed", "another transactional id"): (
            "the producer's transactional id is compared each time"
        )
        for version in (5, 6)
    },
}
"""The reason why an answer differs from Kafka's, by file and label."""
CHANGED: dict[tuple[str, str], str] = {
    ("alter_client_quotas_v1_refused", "infinity"): "4.4 has a message of its own",
    ("describe_configs_v4_broker", "describe '1'"): "4.4 has group.streams.assignors",
    ("create_acls_v3_odd", "no host"): "4.4 refuses it",
    ("create_acls_v3_odd", "all"): "4.3 has stored the ACL without a host",
}
"""The same for the older version, where the newest one is followed."""


@dataclass(slots=True)
class Replay:
    """A fresh broker that draws the ids recorded in a file."""

    path: Path
    topic_ids: deque[bytes] = field(default_factory=deque)
    session_ids: deque[int] = field(default_factory=deque)
    broker: Broker = field(init=False)
    dispatcher: Dispatcher = field(init=False)

    def __post_init__(self) -> None:
        is_secured = "authorizer.class.name" in self.path.read_text().split("\n\n")[0]
        broker = make_broker(authorizer=standard_authorizer() if is_secured else None)
        assert isinstance(broker.clock, MockClock)
        broker.clock.jump(RECORDED_MS - broker.clock.now_ms())
        broker.topics.random_uuid = self.topic_ids.popleft
        broker.fetch_sessions.random_id = self.session_ids.popleft
        self.broker = broker
        self.dispatcher = Dispatcher(broker, Routes())

    def rows(self) -> list[tuple[str, Any, Any]]:
        """The label, Kafka's answer and ours; None for no answer."""
        connection = make_connection()
        found: list[tuple[str, Any, Any]] = []
        for exchange in exchanges(self.path):
            theirs = self.decoded(exchange, exchange.response)
            self.learn(exchange, theirs)
            answer = None
            with suppress(CloseConnection):
                answer = self.dispatcher.answer(exchange.request, 0, connection)
            if isinstance(answer, Deferred):
                frames: list[bytes] = []
                answer.when_done(frames.append)
                (answer,) = frames
            assert answer is None or isinstance(answer, bytes), exchange.label
            ours = self.decoded(exchange, answer[4:] if answer else None)
            if self.path.parent.name != NEWEST:
                forget_added(ours)
            found.append((exchange.label, arranged(theirs), arranged(ours)))
        return found

    def decoded(self, exchange: Exchange, response: bytes | None) -> Any:
        return decoded(self.dispatcher, exchange.request, response) if response else None

    def learn(self, exchange: Exchange, theirs: Any) -> None:
        """Collect the ids that Kafka will draw in this answer."""
        if isinstance(theirs, CreateTopicsResponse):
            ids = {topic.name: topic.topic_id for topic in theirs.topics if topic.topic_id != NIL_UUID}
            self.topic_ids.extend(ids[name] for name in names_created(exchange.request) if name in ids)
        elif isinstance(theirs, FetchResponse):
            known = self.broker.fetch_sessions.sessions
            self.session_ids.clear()
            if theirs.session_id and theirs.session_id not in known:
                self.session_ids.append(theirs.session_id)
        elif isinstance(theirs, InitProducerIdResponse):
            # earlier requests, which the file does not show, have raised the epoch
            transactions = self.broker.transactions
            transactions.new_producer_id = lambda: theirs.producer_id
            for _ in range(theirs.producer_epoch):
                transactions.init_producer_id("tx", timeout_ms=1_000)


def names_created(request: bytes) -> list[str]:
    """The names of the topics that a CreateTopics request creates, in order."""
    _, version = peek_api(request)
    _, start = read_request_header(request, 0, flexible_request_header(CreateTopicsRequest, version))
    message = decode(CreateTopicsRequest, version, request, start)
    return [] if message.validate_only else [topic.name for topic in message.topics]


def arranged(message: Any) -> Any:
    """The message with unordered fields sorted, and without values that differ from run to run."""
    arrange = ARRANGE.get(type(message))
    if arrange is not None:
        arrange(message)
    return message


def created(response: CreateTopicsResponse) -> None:
    response.topics.sort(key=lambda row: row.name)
    for topic in response.topics:
        topic.configs = [shown for config in topic.configs or () if (shown := comparable(config)) is not None]


@cache
def keys_of_both() -> frozenset[str]:
    """The keys that the newest Kafka described and this host has too."""
    kafkas: set[str] = set()
    for path in golden_files(*CONFIGS, versions=[NEWEST]):
        for exchange in exchanges(path):
            if peek_api(exchange.request)[0] != DescribeConfigsResponse.API_KEY:
                continue
            assert exchange.response is not None
            _, start = read_response_header(exchange.response, 0, flexible=True)
            answer = decode(DescribeConfigsResponse, 4, exchange.response, start)
            kafkas.update(row.name for result in answer.results for row in result.configs)
    return frozenset(kafkas & OUR_KEYS)


def described(response: DescribeConfigsResponse) -> None:
    for result in response.results:
        shown = (row for row in result.configs if row.name in keys_of_both() - NODES_OWN - OTHER_DEFAULTS)
        result.configs = sorted(shown, key=lambda row: row.name)
        for row in result.configs:
            row.read_only = row.read_only or row.name in READ_ONLY


def forget_added(response: Any) -> None:
    """Drop the keys that an older Kafka does not have."""
    arrays: dict[Any, str] = {CreateTopicsResponse: "topics", DescribeConfigsResponse: "results"}
    rows = arrays.get(type(response))
    for row in getattr(response, rows) if rows else ():
        row.configs = [config for config in row.configs or () if config.name not in ADDED]


def altered_quotas(response: AlterClientQuotasResponse) -> None:
    for entry in response.entries:
        entry.entity.sort(key=lambda part: part.entity_type)
    response.entries.sort(key=lambda entry: str(entry.entity))


def described_quotas(response: DescribeClientQuotasResponse) -> None:
    for entry in response.entries or ():
        entry.values.sort(key=lambda value: value.key)
    if response.entries is not None:
        response.entries.sort(key=lambda entry: str(entry.entity))


def comparable(config: CreatableTopicConfigs) -> CreatableTopicConfigs | None:
    """The key, if this host has it too."""
    return config if config.name in TOPIC_KEYS else None


def forget_words(response: ProduceResponse) -> None:
    """Drop our error messages where Kafka sends none, and the log start offset, which depends on when the
    error is found.
    """
    for partition in (row for topic in response.responses for row in topic.partition_responses):
        if partition.error_code:
            partition.error_message = None
            partition.log_start_offset = -1
            for record in partition.record_errors:
                record.batch_index_error_message = None


def forget_the_texts(part: Any) -> None:
    """Drop the texts of errors in all parts of an answer."""
    for name in getattr(type(part), "__slots__", ()):
        value = getattr(part, name)
        if name.endswith("error_message"):
            setattr(part, name, None)
        for each in value if isinstance(value, list) else ():
            forget_the_texts(each)


def of_share_groups(response: Any) -> None:
    """Kafka lists groups and topics in the order of a hash table, or the refused ones first."""
    forget_the_texts(response)
    for array, key in (("groups", "group_id"), ("responses", "topic_name")):
        rows = getattr(response, array, None)
        if rows and hasattr(rows[0], key):
            rows.sort(key=lambda row: str(getattr(row, key)))


def forget_the_log(response: DescribeQuorumResponse) -> None:
    """Drop Kafka's metadata log, which grows, its elections, and its listener for controllers."""
    for partition in (row for topic in response.topics for row in topic.partitions):
        partition.leader_epoch = min(partition.leader_epoch, 1)
        partition.high_watermark = 0
        for voter in partition.current_voters:
            voter.log_end_offset = 0
            voter.last_fetch_timestamp = min(voter.last_fetch_timestamp, 0)
            voter.last_caught_up_timestamp = min(voter.last_caught_up_timestamp, 0)
    for node in response.nodes:
        node.listeners.clear()


def forget_the_port(response: FindCoordinatorResponse) -> None:
    """Drop the port of a coordinator, which differs from run to run."""
    response.port = min(response.port, 0)
    for coordinator in response.coordinators:
        coordinator.port = min(coordinator.port, 0)


def offsets_sorted(response: OffsetCommitResponse | TxnOffsetCommitResponse) -> None:
    """Kafka puts the refused partitions first."""
    response.topics.sort(key=lambda topic: (topic.name, topic.topic_id))
    for topic in response.topics:
        topic.partitions.sort(key=lambda partition: partition.partition_index)


def acls_sorted(response: DescribeAclsResponse) -> None:
    """Kafka lists ACLs in the order of a hash table."""
    response.resources.sort(key=lambda each: (each.resource_type, each.resource_name, each.pattern_type))
    for resource in response.resources:
        resource.acls.sort(key=lambda each: (each.principal, each.host, each.operation))


def matches_sorted(response: DeleteAclsResponse) -> None:
    """The same for the ACLs that a filter removed."""
    for result in response.filter_results:
        result.matching_acls.sort(key=str)


OF_SHARE_GROUPS: tuple[type[Any], ...] = (
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponse,
    ShareAcknowledgeResponse,
    ShareFetchResponse,
    ShareGroupDescribeResponse,
    ShareGroupHeartbeatResponse,
)
ARRANGE: dict[type[Any], Callable[[Any], None]] = {
    AlterClientQuotasResponse: altered_quotas,
    DescribeClientQuotasResponse: described_quotas,
    CreatePartitionsResponse: lambda response: response.results.sort(key=lambda row: row.name),
    CreateTopicsResponse: created,
    DeleteAclsResponse: matches_sorted,
    DescribeAclsResponse: acls_sorted,
    DeleteGroupsResponse: lambda response: response.results.sort(key=lambda row: row.group_id),
    DeleteTopicsResponse: lambda response: response.responses.sort(
        key=lambda row: (row.name or "", row.topic_id)
    ),
    DescribeConfigsResponse: described,
    DescribeQuorumResponse: forget_the_log,
    FindCoordinatorResponse: forget_the_port,
    OffsetCommitResponse: offsets_sorted,
    TxnOffsetCommitResponse: offsets_sorted,
    ElectLeadersResponse: lambda response: response.replica_election_results.sort(key=lambda row: row.topic),
    ProduceResponse: forget_words,
    **dict.fromkeys(OF_SHARE_GROUPS, of_share_groups),
}


@pytest.mark.parametrize("path", FILES, ids=golden_id)
def test_the_answer_is_kafkas(path: Path) -> None:
    rows = Replay(path).rows()

    assert rows
    for label, theirs, ours in rows:
        if (path.stem, label) in (DIFFERENT | CHANGED if path.parent.name == OLDER else DIFFERENT):
            assert ours != theirs, f"{label}: no longer different"
        else:
            assert ours == theirs, label


def test_every_listed_difference_is_in_a_file() -> None:
    labels = {(path.stem, exchange.label) for path in FILES for exchange in exchanges(path)}

    assert (DIFFERENT | CHANGED).keys() - labels == set()


def test_every_api_has_golden_files() -> None:
    assert {path.stem.rpartition("_v")[0] for path in FILES if path.stem not in CONFIGS} == set(APIS)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_key_of_kafka_alone_is_described_by_name_with_kafkas_type_and_default(version: str) -> None:
    path = GOLDEN / version / "describe_configs_v4_broker.hex"
    replay, exchange = Replay(path), exchanges(path)[0]
    recorded = replay.decoded(exchange, exchange.response).results[0].configs
    known_here = replay.broker.start_values
    expected = {
        row.name: (row.config_type, default_of(row), row.is_sensitive)
        for row in recorded
        if row.name not in known_here and row.name not in NEVER_SHOWN
    }

    shown = map(replay.broker.config.entry, kafka_keys().keys() & {row.name for row in recorded})

    assert len(expected) > 180
    assert {
        entry.key.name: (entry.key.kind.type, entry.value, entry.key.sensitive) for entry in shown
    } == expected


def default_of(row: Any) -> str | None:
    """The default of a key as Kafka shows it."""
    return next((each.value for each in row.synonyms if each.source == ConfigSource.DEFAULT), None)
