"""Random requests whose fields mean something to a broker: names that exist or do not, numbers that may be
wrong. A name is not repeated within an array, and no topic comes without partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from odradek.wire.layout import ArrayOf, Field, Kind, StructOf
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from odradek.wire.types import NIL_UUID, Scalar
from random_messages import MessageMaker

TOPICS: Final = {"alpha": 3, "beta": 1}
"""The partitions of the topics that exist."""
TOPIC_IDS: Final = {name: bytes([number]) * 16 for number, name in enumerate(TOPICS, 0xA0)}
"""Stand-ins for their ids, which a broker chooses."""
GROUP: Final = "committed"
"""A group with offsets."""
NEW: Final = "new"
"""The names of groups and topics that requests create begin so."""
BATCH: Final = build_batch([Record(None, b"v", 1_795_000_000_000)])
NAMES: Final = (*TOPICS, *TOPICS, "missing", "", "a b", ".", "x" * 250)
GROUPS: Final = (GROUP, GROUP, "missing", "")
TRANSACTIONS: Final = ("missing", "transaction", "")
INDEXES: Final = (0, 0, 0, 1, 2, 3, 1000, -1)
EPOCHS: Final = (-1, -1, 0, 1, 1000, -2)
OFFSETS: Final = (0, 1, 3, 4, 1000, -1, -2)
TIMES_MS: Final = (0, 1000, 6_000, 60_000, -1)
CONFIGS: Final = ("retention.ms", "cleanup.policy", "no.such.key", "")
USERS: Final = ("alice", "bob", "")
BYTES: Final = (1 << 20, 1, 0)
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(("topic", "topic_name", "topic_names", "name"), NAMES),
    "topic_id": (*TOPIC_IDS.values(), NIL_UUID, b"\1" * 16),
    **dict.fromkeys(("partition", "partitions", "partition_index", "partition_indexes", "index"), INDEXES),
    **dict.fromkeys(("group_id", "group_ids", "groups", "groups_names"), GROUPS),
    **dict.fromkeys(("transactional_id", "transactional_ids", "v3_and_below_transactional_id"), TRANSACTIONS),
    **dict.fromkeys(("generation_id", "generation_id_or_member_epoch", "member_epoch"), EPOCHS),
    **dict.fromkeys(("leader_epoch", "current_leader_epoch", "committed_leader_epoch"), EPOCHS),
    "last_fetched_epoch": EPOCHS,
    **dict.fromkeys(("committed_offset", "fetch_offset", "offset"), OFFSETS),
    **dict.fromkeys(("session_timeout_ms", "rebalance_timeout_ms", "transaction_timeout_ms"), TIMES_MS),
    **dict.fromkeys(("producer_id", "v3_and_below_producer_id"), (-1, 0, 999_999, -2)),
    **dict.fromkeys(("producer_epoch", "v3_and_below_producer_epoch"), (-1, 0, 1, -2)),
    **dict.fromkeys(("max_bytes", "partition_max_bytes"), BYTES),
    "acks": (1, -1, -1, 2, -2),
    "assignment": (b"", b"all"),
    "broker_ids": (1, 1, 2, -1),
    "committed_metadata": ("", "note"),
    "config_operation": (0, 1, 2, 3),
    "configuration_keys": ("retention.ms", "cleanup.policy", "other"),
    "coordinator_keys": ("any", "other", ""),
    "count": (1, 3, 4, 0, -1),
    "duration_filter": (-1, 0, 1000),
    "election_type": (0, 1, 2),
    "endpoint_type": (1, 2, 0, 3),
    "entity_type": ("user", "client-id", "ip", "other", ""),
    "feature": ("metadata.version", "group.version", "transaction.version", "other"),
    "group_instance_id": ("static", "", "a b"),
    "isolation_level": (0, 1),
    "iterations": (4096, 8192, 1, 1 << 20),
    "key": ("any", ""),
    "key_type": (0, 0, 1, 1, 2, 3, -1),
    "log_start_offset": (-1, -1, 0),
    "match_type": (0, 1, 2, 3),
    "max_version_level": (0, 1, 2, -1, 100),
    "max_wait_ms": (0, 50, -1),
    "mechanism": (0, 1, 2, 3),
    "member_id": ("", "", "nobody"),
    "metadata": (b"", bytes(6), bytes(10)),
    "min_bytes": (0, 1, 1),
    "num_partitions": (1, 2, -1, 0, -2),
    "path": ("/no/such/folder", "relative", ""),
    "producer_id_filters": (0, -1),
    "protocol_name": ("range", "range", "other", ""),
    "protocol_type": ("consumer", "consumer", "connect", ""),
    "records": (BATCH, BATCH, BATCH, b"", BATCH[:-1], BATCH[:20], BATCH[:-1] + b"\xff", BATCH * 2),
    "replica_epoch": (-1,),
    "replica_id": (-1, -1, -1, -1, -2),
    "replicas": (1, 1, 1, 2, -1),
    "replication_factor": (1, 1, -1, 0, 2, -2),
    "resource_type": (2, 2, 2, 4, 16, 32, 0, 3),
    "resource_types": (2, 4, 8, 16, 32, 0, 7),
    "response_partition_limit": (2000, 1, 0, -1),
    "process_id": ("process",),
    "repartition_sink_topics": (*TOPICS, "a b"),
    "server_assignor": ("uniform", "range", "other"),
    "session_epoch": (-1, -1, 0, 0, 1, 2),
    "session_id": (0, 0, 0, 5),
    "state_filters": ("Ongoing", "Empty", "other"),
    "source_topics": (*TOPICS, *TOPICS, "missing", "a b"),
    "states_filter": ("Stable", "empty", "Dead", "other", ""),
    "subtopology_id": ("s", "t"),
    "subscribed_topic_regex": ("a.*", "", "("),
    "timeout_ms": (5_000, 5_000, 5_000, 0),
    "timestamp": (-1, -2, -3, -4, -5, -6, -7, 0, 1_795_000_000_000, 1 << 62),
    "transactional_id_pattern": ("tr.*", "", "("),
    "types_filter": ("consumer", "Classic", "other"),
    "upgrade_type": (0, 1, 2, 3, 4),
    "value": ("1", "x", "60000", "delete"),
    "CreatableTopic.name": (*NAMES, NEW, NEW, NEW, NEW, "__cluster_metadata"),
    "CreatableTopicConfig.name": CONFIGS,
    "AlterableConfig.name": CONFIGS,
    "AlterConfigsResource.resource_type": (2, 2, 4, 16, 32),
    "AlterConfigsResource.resource_name": (*TOPICS, "1", "missing"),
    "DeleteTopicsRequest.timeout_ms": (5_000,),
    "FetchTopic.topic_id": (*TOPIC_IDS.values(), b"\1" * 16),
    "JoinGroupRequestProtocol.name": ("range", "range", "other"),
    "OpData.key": ("producer_byte_rate", "request_percentage", "connection_creation_rate", "other", ""),
    "OpData.value": (1000.0, 0.0, -1.0, 1.5, float("nan"), float("inf")),
    "ScramCredentialDeletion.name": USERS,
    "ScramCredentialUpsertion.name": USERS,
    "TopicInfo.name": (*TOPICS, *TOPICS, "a b"),
    "TopicInfo.partitions": (0, 0, 0, 1, 3),
    "TopicRequest.name": (*TOPICS, "missing", "a b", "."),
    "UserName.name": USERS,
}  # fmt: skip
"""Values of fields, or of a field in one structure, by name; all others are random."""
ALWAYS_NULL: Final = frozenset({"cluster_id", "rack_id"})
NEVER_NULL: Final = frozenset({"records"})
RARE: Final = frozenset(
    {"source_topic_regex", "repartition_sink_topics", "repartition_source_topics", "warmup_tasks"}
)
"""Arrays that are empty most of the time: with an element, few requests are accepted."""
EMPTY: Final = frozenset({"copartition_groups"})
"""Indexes outside the lists of a subtopology are refused here; Kafka fails."""
OWN_GROUP: Final = frozenset(
    {"JoinGroupRequest", "ConsumerGroupHeartbeatRequest", "StreamsGroupHeartbeatRequest"}
)
"""Requests with a group of their own: in one group they would wait for each other."""


@dataclass(slots=True)
class RequestMaker(MessageMaker):
    """Creates requests."""

    owner: str = ""
    """The structure whose fields are chosen."""
    made: int = 0
    """The number of the newest request, which is in the names that it creates."""

    def message(self, cls: type, version: int) -> Any:
        self.made += 1
        return MessageMaker.message(self, cls, version)

    def structure(self, shape: StructOf) -> Any:
        outer, self.owner = self.owner, shape.cls.__name__
        try:
            return MessageMaker.structure(self, shape)
        finally:
            self.owner = outer

    def field(self, field: Field) -> Any:
        if field.nullable and field.name in ALWAYS_NULL:
            return None
        if field.name in NEVER_NULL:
            return self.value(field.kind, field.name)
        return MessageMaker.field(self, field)

    def value(self, kind: Kind, name: str) -> Any:
        if isinstance(kind, ArrayOf):
            return self.array(kind.element, name)
        if isinstance(kind, StructOf) or kind == Scalar("?"):
            return MessageMaker.value(self, kind, name)
        if name == "group_id" and self.owner in OWN_GROUP:
            return self.source.choice((f"{NEW}-{self.made}", f"{NEW}-{self.made}", ""))
        values = VALUES.get(f"{self.owner}.{name}") or VALUES.get(name)
        chosen = self.source.choice(values) if values else MessageMaker.value(self, kind, name)
        return f"{NEW}-{self.made}" if chosen == NEW else chosen

    def array(self, element: Kind, name: str) -> list[Any]:
        """Up to three elements with different first fields; at least one inside a structure."""
        if name in EMPTY or (name in RARE and self.source.random() < 0.9):
            return []
        most = self.source.choice((0, 1, 1, 1, 2, 3)) or int(not self.owner.endswith("Request"))
        made = [self.value(element, name) for _ in range(most)]
        first = element.fields[0].name if isinstance(element, StructOf) else ""
        return list({repr(getattr(each, first, each)): each for each in made}.values())
