"""The keys of a broker that stand in its configuration file and stay as they are.

Names, types and defaults are those of Kafka 4.3: KRaftConfigs, ServerConfigs, ReplicationConfigs,
GroupCoordinatorConfig, TransactionStateManagerConfig, QuotaConfig.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigKey
from odradek.quota.quota_config import QuotaConfig
from odradek.quota.quota_managers import QuotaManagers
from odradek.wire.config_resource import ConfigType

INT, LONG = ConfigType.INT, ConfigType.LONG
LIST, STRING, BOOLEAN = ConfigType.LIST, ConfigType.STRING, ConfigType.BOOLEAN


@dataclass(frozen=True, slots=True)
class StaticKey:
    """A key and where its value is."""

    key: ConfigKey
    read: Callable[[Broker], object]


def static(
    name: str, kind: ConfigType, default: str, read: Callable[[Broker], object], documentation: str
) -> StaticKey:
    return StaticKey(ConfigKey(name=name, type=kind, default=default, documentation=documentation), read)


def value_text(value: object) -> str:
    """A setting as Kafka prints it."""
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    return str(value).lower() if isinstance(value, bool) else str(value)


OWN_KEYS = (
    static("node.id", INT, "1", lambda broker: broker.settings.node_id, "Number of this node in its cluster"),
    static(
        "auto.create.topics.enable",
        BOOLEAN,
        "true",
        lambda broker: broker.settings.auto_create_topics_enable,
        "Whether asking for a topic that does not exist creates it",
    ),
    static(
        "num.partitions",
        INT,
        "1",
        lambda broker: broker.settings.num_partitions,
        "Partitions of a topic that is created without saying how many",
    ),
    static(
        "fetch.max.bytes",
        INT,
        "57671680",
        lambda broker: broker.settings.fetch_max_bytes,
        "How large an answer to a fetch may be",
    ),
    static(
        "max.incremental.fetch.session.cache.slots",
        INT,
        "1000",
        lambda broker: broker.settings.max_incremental_fetch_session_cache_slots,
        "How many clients are told only what is new to them",
    ),
    static(
        "telemetry.max.bytes",
        INT,
        "1048576",
        lambda broker: broker.telemetry.config.telemetry_max_bytes,
        "How large a push of client metrics may be, compressed",
    ),
)
GROUP_KEYS = (
    static(
        "group.initial.rebalance.delay.ms",
        INT,
        "3000",
        lambda broker: broker.groups.config.initial_rebalance_delay_ms,
        "How long the first members of a group wait for others",
    ),
    static(
        "group.max.session.timeout.ms",
        INT,
        "1800000",
        lambda broker: broker.groups.config.max_session_timeout_ms,
        "The longest session that a member may ask for",
    ),
    static(
        "group.max.size",
        INT,
        "2147483647",
        lambda broker: broker.groups.config.max_size,
        "How many members a classic group may have",
    ),
    static(
        "group.min.session.timeout.ms",
        INT,
        "6000",
        lambda broker: broker.groups.config.min_session_timeout_ms,
        "The shortest session that a member may ask for",
    ),
    static(
        "group.consumer.assignors",
        LIST,
        "uniform,range",
        lambda broker: broker.groups.config.consumer_assignors,
        "Who assigns partitions in consumer groups; the first where a member does not choose",
    ),
    static(
        "group.consumer.heartbeat.interval.ms",
        INT,
        "5000",
        lambda broker: broker.groups.config.consumer_heartbeat_interval_ms,
        "How often members of a consumer group have to call",
    ),
    static(
        "group.consumer.max.size",
        INT,
        "2147483647",
        lambda broker: broker.groups.config.consumer_max_size,
        "How many members a consumer group may have",
    ),
    static(
        "group.consumer.migration.policy",
        STRING,
        "bidirectional",
        lambda broker: broker.groups.config.consumer_migration_policy,
        "Between which protocols a group may change while it is in use",
    ),
    static(
        "group.consumer.session.timeout.ms",
        INT,
        "45000",
        lambda broker: broker.groups.config.consumer_session_timeout_ms,
        "After how long a silent member of a consumer group is out of it",
    ),
    static(
        "offset.metadata.max.bytes",
        INT,
        "4096",
        lambda broker: broker.groups.config.offset_metadata_max_bytes,
        "How long the text may be that is committed with an offset",
    ),
    static(
        "offsets.retention.check.interval.ms",
        LONG,
        "600000",
        lambda broker: broker.groups.config.offsets_retention_check_interval_ms,
        "How often offsets that nobody needs are looked for",
    ),
    static(
        "offsets.retention.minutes",
        INT,
        "10080",
        lambda broker: broker.groups.config.offsets_retention_minutes,
        "How long the offsets of a group without members are kept",
    ),
)
TRANSACTION_KEYS = (
    static(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        INT,
        "10000",
        lambda broker: broker.transactions.config.abort_timed_out_interval_ms,
        "How often transactions whose time is up are looked for",
    ),
    static(
        "transaction.max.timeout.ms",
        INT,
        "900000",
        lambda broker: broker.transactions.config.transaction_max_timeout_ms,
        "The longest time that a producer may ask for its transactions",
    ),
    static(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        INT,
        "3600000",
        lambda broker: broker.transactions.config.remove_expired_interval_ms,
        "How often transactional ids that nobody uses are looked for",
    ),
    static(
        "transactional.id.expiration.ms",
        INT,
        "604800000",
        lambda broker: broker.transactions.config.transactional_id_expiration_ms,
        "How long a transactional id that nobody uses is kept",
    ),
)


def window_keys(
    prefix: str, what: str, config: Callable[[QuotaManagers], QuotaConfig]
) -> Iterator[StaticKey]:
    """The windows of one kind of quota."""
    yield static(
        f"{prefix}quota.window.num",
        INT,
        "11",
        lambda broker: config(broker.quotas).samples,
        f"How many windows are kept of {what}",
    )
    yield static(
        f"{prefix}quota.window.size.seconds",
        INT,
        "1",
        lambda broker: config(broker.quotas).window_size_s,
        f"How long each window is that is kept of {what}",
    )


QUOTA_KEYS = (
    *window_keys("", "what clients use", lambda quotas: quotas.produce.config),
    *window_keys("controller.", "changes of topics", lambda quotas: quotas.controller_mutation.config),
    *window_keys("replication.", "replication", lambda quotas: quotas.leader.config),
    *window_keys(
        "alter.log.dirs.replication.",
        "moves between directories",
        lambda quotas: quotas.alter_log_dirs.config,
    ),
)
STATIC_KEYS = OWN_KEYS + GROUP_KEYS + TRANSACTION_KEYS + QUOTA_KEYS
