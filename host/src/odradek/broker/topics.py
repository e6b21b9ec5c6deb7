"""Topics: their names, ids, partitions and logs.

The metadata store is the source of truth. `Topics` mirrors it in memory for requests;
`odradek.broker.topic_changes` creates and deletes topics in both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from odradek.broker.taken_names import TakenNames
from odradek.broker.throttled_replicas import THROTTLED_REPLICAS, check_throttled_replicas
from odradek.group.committed_offset import TopicPartition
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.log_validator import RecordCheck
from odradek.log.partition_log import PartitionLog
from odradek.metadata.store import MetadataStore, StoreError, TopicRow
from odradek.plugin.config import ConfigError
from odradek.settings.state_limit import StateLimit
from odradek.waiting.clock import Clock
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.types import NIL_UUID

TOPICS_BEING_DELETED = "topics.being.deleted"
"""The value of the host that has the ids of deleted topics whose logs may still exist, in hexadecimal."""
TOPIC_RESOURCE = 2  # ConfigResource.Type.TOPIC
MAX_NAME_LENGTH = 249  # org.apache.kafka.common.internals.Topic.MAX_NAME_LENGTH
MAX_PARTITIONS = 1_000
"""Limit per topic, so that a request cannot fill the disk with folders."""
LEGAL_NAME = re.compile(r"[a-zA-Z0-9._-]+")
MAX_PARTITIONS_OF_REQUEST = 10_000
"""Limit over all topics that one request creates (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH)."""
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""KRaft's own log in Kafka: no topic may have this name."""
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
"""Topics in which Kafka's coordinators store their state. This host has none of them, and no client may
create one."""
LEADER_EPOCH = 0
"""A single node never has another leader."""
NO_EPOCH = -1
NO_LEADER = -1
"""The leader of a partition whose log directory is offline."""


@dataclass(frozen=True, slots=True)
class TopicGuard:
    """Limits what clients may do to a topic that the host needs."""

    check_config: Callable[[LogConfig], None]
    """Raises `ApiError` if the host could not work with this configuration."""
    check_record: RecordCheck | None = None
    """Clients may only write records that pass."""
    closed: bool = False
    """Clients may not write at all."""
    internal: bool = False
    """Clients are told that the topic is internal: those that subscribe to a pattern leave it out."""


@dataclass(slots=True, eq=False)
class Topic:
    """One topic and its partitions' logs, by index."""

    name: str
    id: bytes
    config: LogConfig
    partitions: list[PartitionLog] = field(default_factory=list)
    guard: TopicGuard | None = None
    last_extension: Deferred[None] | None = None
    """Done once the newest request that adds partitions has ended."""

    @property
    def is_internal(self) -> bool:
        """See `TopicGuard.internal`."""
        return self.name in INTERNAL_TOPICS or (self.guard is not None and self.guard.internal)

    def partition(self, index: int) -> PartitionLog | None:
        """The log of a partition; None if the topic has no such partition."""
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    @contextmanager
    def extending(self) -> Iterator[Deferred[None] | None]:
        """Reserve the right to add partitions; gives what must be waited for first, None for nothing."""
        ahead, mine = self.last_extension, Deferred[None]()
        self.last_extension = mine
        try:
            yield None if ahead is None or ahead.done else ahead
        finally:
            mine.complete(None)


KeysChanged = Callable[[str, Mapping[str, str]], None]
"""Called with the name and the keys of a topic that was opened, created, configured or deleted."""


class Topics:
    """All topics of the host, for requests that do not create or delete any."""

    def __init__(
        self,
        metadata: MetadataStore,
        logs: LogManager,
        clock: Clock,
        random_uuid: Callable[[], bytes],
        defaults: LogConfig | None = None,
        keys_changed: KeysChanged = lambda _name, _properties: None,
        max_topics: int = INT32_MAX,
        max_partitions: int = INT32_MAX,
    ) -> None:
        self.metadata = metadata
        self.logs = logs
        self.clock = clock
        self.random_uuid = random_uuid
        self.defaults = defaults or LogConfig()
        self.by_name: dict[str, Topic] = {}
        self.by_id: dict[bytes, Topic] = {}
        self.guards: Mapping[str, TopicGuard] = {}
        """By name, also of topics that do not exist yet."""
        self.names = TakenNames()
        """The names of all topics, and of those that are being created."""
        self.topics_limit = StateLimit("topics", "topics.max", max_topics, self.names.__len__, clock)
        self.partitions_limit = StateLimit(
            "partitions", "partitions.max", max_partitions, logs.__len__, clock
        )
        self.listeners: list[Callable[[], None]] = []
        """Called after topics were created, deleted or given more partitions."""
        self.keys_changed = keys_changed
        self.being_deleted = {
            bytes.fromhex(each) for each in (metadata.value(TOPICS_BEING_DELETED) or "").split(",")
        } - {b""}
        """The ids of deleted topics that may still have logs."""
        for row in metadata.topics():
            self.open(row)
        logs.discard_unknown(self.being_deleted)
        if self.being_deleted and not logs.offline:
            self.being_deleted.clear()
            metadata.put_value(TOPICS_BEING_DELETED, "")

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.by_name.values())

    @property
    def limits(self) -> list[StateLimit]:
        return [self.topics_limit, self.partitions_limit]

    def protect(self, guards: Mapping[str, TopicGuard]) -> None:
        """Protect the topics of these names from clients, also those that are created later."""
        self.guards = guards
        for name, topic in self.by_name.items():
            topic.guard = guards.get(name)

    def named(self, name: str) -> Topic | None:
        return self.by_name.get(name)

    def log(self, name: str, index: int) -> PartitionLog:
        """The log of a partition.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self.by_name.get(name)
        log = topic.partition(index) if topic is not None else None
        if log is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return log

    def online_log(self, name: str, index: int) -> PartitionLog:
        """The log of a partition that can be used.

        Raises:
            ApiError: UNKNOWN_TOPIC_OR_PARTITION; KAFKA_STORAGE_ERROR: its log directory is offline.
        """
        log = self.log(name, index)
        if log.offline:
            raise log.offline_error()
        return log

    def committed(self, name: str, topic_id: bytes, index: int, *, by_id: bool) -> TopicPartition:
        """The partition that an offset is committed for. Its topic is named by id or by name.

        Raises:
            ApiError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION.
        """
        topic = self.by_id.get(topic_id) if by_id else self.by_name.get(name)
        if topic is None and by_id:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
        if topic is None or topic.partition(index) is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        return topic.id, index

    def open(self, row: TopicRow) -> Topic:
        """Open the logs of a stored topic; a missing log starts empty.

        Raises:
            StoreError: The stored topic cannot be one that a host has created.
            ApiError: KAFKA_STORAGE_ERROR.
        """
        fault = fault_of(row.name)
        if fault is not None or row.partitions not in range(1, MAX_PARTITIONS + 1):
            raise StoreError(fault or f"a topic with {row.partitions} partitions")
        properties = self.metadata.resource(TOPIC_RESOURCE, row.name)
        config, now_ms = self.config_of(properties), self.clock.now_ms()
        partitions = [
            self.logs.open(row.name, index, config, row.id, now_ms, exists=True)
            for index in range(row.partitions)
        ]
        topic = Topic(row.name, row.id, config, partitions)
        self.names.add(row.name)
        self.show(topic, properties)
        return topic

    def show(self, topic: Topic, properties: Mapping[str, str]) -> None:
        """Make a topic visible, whose name is taken already."""
        topic.guard = self.guards.get(topic.name)
        self.by_name[topic.name] = self.by_id[topic.id] = topic
        self.keys_changed(topic.name, properties)

    def hide(self, topic: Topic) -> None:
        """Make a topic invisible, and its name free."""
        del self.by_name[topic.name], self.by_id[topic.id]
        self.names.discard(topic.name)
        self.keys_changed(topic.name, {})

    def config_of(self, properties: Mapping[str, str]) -> LogConfig:
        """The effective configuration: the topic's own keys over the host's defaults.

        Raises:
            ApiError: INVALID_CONFIG.
        """
        try:
            check_throttled_replicas(properties)
            of_logs = {key: value for key, value in properties.items() if key not in THROTTLED_REPLICAS}
            return LogConfig.parse(of_logs, self.defaults)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_CONFIG, error.problem) from None

    def tell(self) -> None:
        """Call the listeners: the set of topics or partitions has changed."""
        for listener in self.listeners:
            listener()

    def reconfigure(self, topic: Topic, config: LogConfig) -> None:
        """Apply a configuration to a topic and its logs, from the next append on."""
        topic.config = config
        for log in topic.partitions:
            log.config = config

    def set_defaults(self, defaults: LogConfig) -> None:
        """Change the defaults of all topics."""
        self.defaults = defaults
        for topic in self.by_name.values():
            self.refresh(topic, self.metadata.resource(TOPIC_RESOURCE, topic.name))

    def refresh(self, topic: Topic, properties: Mapping[str, str]) -> None:
        """Apply the current defaults to a topic. One whose own keys conflict with them keeps its
        configuration.
        """
        with suppress(ApiError):
            self.reconfigure(topic, self.config_of(properties))

    def check_new(self, name: str, partitions: int, properties: Mapping[str, str]) -> None:
        """Check that a topic can be created; reports faults in Kafka's order."""
        self.check_new_name(name)
        self.config_of(properties)
        check_partitions(partitions)
        self.check_room(partitions)

    def check_room(self, partitions: int) -> None:
        """Check that there may be one more topic.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        self.topics_limit.check()
        self.partitions_limit.check(partitions)

    def check_new_name(self, name: str) -> None:
        """Check that a new topic may have this name.

        Raises:
            ApiError: INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS or INVALID_REQUEST.
        """
        check_name(name)
        if name in self.names:
            raise ApiError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
        if name == CLUSTER_METADATA_TOPIC or name in INTERNAL_TOPICS:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {name} is prohibited.")
        rival = self.names.rival(name)
        if rival is not None:
            raise ApiError(
                ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {rival}"
            )

    def fresh_id(self) -> bytes:
        """An unused id. Kafka reserves the ids 0 and 1, and ids whose text starts with a dash."""
        while True:
            candidate = self.random_uuid()
            reserved = candidate in (NIL_UUID, bytes(15) + b"\x01") or candidate[0] >> 2 == 62
            if not reserved and candidate not in self.by_id:
                return candidate


def check_name(name: str) -> None:
    """Check a name against the rules for topics (``org.apache.kafka.common.internals.Topic.validate``).

    Raises:
        ApiError: INVALID_TOPIC_EXCEPTION.
    """
    fault = fault_of(name)
    if fault is not None:
        raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")


def fault_of(name: str) -> str | None:
    """The fault of a name in Kafka's words; None if it is legal."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_NAME_LENGTH:
        # unlike Kafka, do not repeat the whole name: it may have megabytes
        shown = f"{name[:MAX_NAME_LENGTH]}..."
        return f"the length of '{shown}' is longer than the max allowed length {MAX_NAME_LENGTH}"
    if not LEGAL_NAME.fullmatch(name):
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def check_partitions(count: int) -> None:
    """Check the number of partitions of a topic.

    Raises:
        ApiError: INVALID_PARTITIONS.
    """
    if count < 1:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."
        )
    if count > MAX_PARTITIONS:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS, f"A topic has at most {MAX_PARTITIONS} partitions, found {count}."
        )


def check_leader_epoch(client_epoch: int) -> None:
    """Check the leader epoch that a client knows; -1 means that it does not care.

    Raises:
        ApiError: UNKNOWN_LEADER_EPOCH if the client is ahead; FENCED_LEADER_EPOCH if it is behind, which
            takes a negative epoch because this host is always in epoch 0.
    """
    if client_epoch > LEADER_EPOCH:
        raise ApiError(ErrorCode.UNKNOWN_LEADER_EPOCH)
    if client_epoch < NO_EPOCH:
        raise ApiError(ErrorCode.FENCED_LEADER_EPOCH)
