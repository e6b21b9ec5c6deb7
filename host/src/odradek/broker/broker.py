"""The broker: everything that a handler may reach."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from odradek.broker.audit import Audit
from odradek.broker.authorization import Authorization
from odradek.broker.certificate_store import CertificateStore, NoCertificates
from odradek.broker.client_quotas import ClientQuotas
from odradek.broker.credentials import Credentials
from odradek.broker.dynamic_config import DynamicConfig
from odradek.broker.features import Features
from odradek.broker.fetch.fetch_session import PARTITIONS_KEY, SLOTS_KEY, FetchSessionCache
from odradek.broker.topic_changes import ChangeableTopics
from odradek.broker.topics import MAX_PARTITIONS
from odradek.group.group_coordinator import GroupCoordinator
from odradek.log.batch_work import BatchOffload
from odradek.log.log_manager import LogManager
from odradek.log.log_validator import DECOMPRESSED_BYTES
from odradek.metadata.store import MetadataStore
from odradek.plugin.context import ConnectionContext
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaManagers
from odradek.settings.kinds import INT, Flag, Whole
from odradek.settings.setting import setting
from odradek.settings.start_values import StartValue
from odradek.settings.state_limit import NAME_KEY, NameLimit, StateLimit
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import Deferred, offload_inline
from odradek.waiting.step_runner import StepRunner
from odradek.wire.config_resource import ResourceType
from odradek.wire.limits import INT16_MAX

if TYPE_CHECKING:
    from odradek.broker.acls import Acls
    from odradek.estimate.subscription_estimates import SubscriptionEstimates
    from odradek.security.sasl_authenticator import SaslAuthenticator

FEATURES = "features"
"""The host's own value that has the levels of features, as JSON."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address that clients are told to connect to."""

    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """Settings of the broker itself."""

    # fmt: off
    node_id: int = setting("node.id", Whole(INT), 1, "Id of this broker in its cluster.")
    auto_create_topics_enable: bool = setting(
        "auto.create.topics.enable", Flag(), True,
        "Whether a request for a topic that does not exist creates the topic.",
    )
    num_partitions: int = setting(
        "num.partitions", Whole(INT, 1, MAX_PARTITIONS), 1,
        "Partitions of a topic that is created without a partition count.", unit="partitions",
    )
    fetch_max_bytes: int = setting(
        "fetch.max.bytes", Whole(INT, 1024), 57_671_680,
        "Largest response to a fetch request.", unit="bytes",
    )
    max_incremental_fetch_session_cache_slots: int = setting(
        SLOTS_KEY, Whole(INT), 1_000,
        "Incremental fetch sessions that are cached (KIP-227); a client without a session names all its "
        "partitions in every request.", unit="sessions",
    )
    request_turn_us: int = setting(
        "request.turn.us", Whole(INT, 100, 1_000_000), 500,
        "How long large requests may keep the event loop busy at a time; the rest of their work waits until "
        "the loop has served other clients.", unit="µs",
    )
    max_fetch_session_partitions: int = setting(
        PARTITIONS_KEY, Whole(INT), 500_000,
        "Most partitions in all fetch sessions together; a client that finds no room works without a "
        "session.", unit="partitions",
    )
    """Some 150 MB. Kafka has no such limit."""
    name_max_length: int = setting(
        NAME_KEY, Whole(INT, 64, INT16_MAX), 1_024,
        "Longest name that a client may choose for something that the host keeps: a client id, software "
        "name, group id, member id, transactional id, user, quota entity or subscription; beyond it "
        "POLICY_VIOLATION.", unit="characters",
    )
    response_max_bytes: int = setting(
        "response.max.bytes", Whole(INT, 1024), 33_554_432,
        "Largest response to a request that lists or describes things; a request for more is refused as "
        "POLICY_VIOLATION. Responses with records have `fetch.max.bytes`.", unit="bytes",
    )
    """Ten thousand topics with all their keys. Kafka has no bound."""
    produce_batch_max_records: int = setting(
        "produce.batch.max.records", Whole(INT, 1), 100_000,
        "Most records in one batch of a producer; more are refused as MESSAGE_TOO_LARGE, upon which Java "
        "producers split the batch.", unit="records",
    )
    """Kafka has no bound. The default is ten times the largest default batch of librdkafka."""
    produce_decompressed_max_bytes: int = setting(
        "produce.decompressed.max.bytes", Whole(INT, 1), DECOMPRESSED_BYTES,
        "What a compressed batch of a producer may open to, or 16 times `max.message.bytes` if that is more; "
        "beyond it MESSAGE_TOO_LARGE.", unit="bytes",
    )
    produce_inline_records: int = setting(
        "produce.inline.records", Whole(INT), 10_000,
        "Records and headers of one request that are validated on the event loop; a worker process validates "
        "the other batches.", unit="records",
    )
    """As many as librdkafka puts into a batch by default: seven to eleven milliseconds of work."""
    produce_inline_bytes: int = setting(
        "produce.inline.bytes", Whole(INT), 262_144,
        "Bytes of one request, decompressed, that are validated on the event loop; likewise.", unit="bytes",
    )
    max_topics: int = setting(
        "topics.max", Whole(INT, 1), 50_000, "Most topics.", unit="topics",
    )
    max_partitions: int = setting(
        "partitions.max", Whole(INT, 1), 100_000,
        "Most partitions of all topics together; each takes 5 kB of memory and a few files.",
        unit="partitions",
    )
    max_client_quotas: int = setting(
        "client.quotas.max", Whole(INT, 1), 50_000,
        "Most entities with quotas: users, client ids, addresses, and combinations of them.", unit="entities",
    )
    max_users: int = setting(
        "scram.users.max", Whole(INT, 1), 50_000, "Most users with SCRAM credentials.", unit="users",
    )
    # fmt: on


class TelemetrySink(Protocol):
    """Keeps accepted pushes before the plugins get them."""

    def take(self, push: AcceptedPush) -> bool | Deferred[bool]:
        """Keep a push. Returns whether it is kept."""


@dataclass(slots=True, kw_only=True)
class Broker:
    """The rooms of one host, as `compose_broker` connects them; driven by the program's loop."""

    settings: BrokerSettings
    start_values: Mapping[str, StartValue]
    """All settings of the host by key, as of its start."""
    cluster_id: str
    clock: Clock
    timer: Timer
    metadata: MetadataStore
    logs: LogManager
    topics: ChangeableTopics
    telemetry: ClientMetricsManager
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    fetch_sessions: FetchSessionCache
    quotas: QuotaManagers
    connection_quotas: ConnectionQuotas
    client_quotas: ClientQuotas
    credentials: Credentials
    features: Features
    config: DynamicConfig
    steps: StepRunner
    """Runs the work of large requests."""
    names: NameLimit
    audit: Audit
    authorization: Authorization = field(default_factory=Authorization)
    """The rights of callers."""
    acls: Acls | None = None
    """None without the standard authorizer."""
    offload: BatchOffload = offload_inline
    """Validates large record batches."""
    sink: TelemetrySink | None = None
    """None if pushes only go to receivers."""
    followed_cluster: str | None = None
    """The cluster whose CLIENT_METRICS resources replace those of this host."""
    authenticators: dict[str, SaslAuthenticator] = field(default_factory=dict)
    """By connection id: connections of SASL listeners that have not authenticated, or will do so again."""
    certificates: CertificateStore = field(default_factory=NoCertificates)
    """The certificates of TLS listeners."""
    estimates: SubscriptionEstimates | None = None
    """None if changes of subscriptions are not estimated."""
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    """Advertised addresses by listener name; a client gets the address of the listener it is connected to."""
    large_responses_refused: int = 0
    """Requests whose responses would have been larger than `response.max.bytes`."""

    @property
    def wants_telemetry(self) -> bool:
        """Whether anything takes pushes. If not, the telemetry APIs are not advertised."""
        return self.sink is not None or not self.telemetry.plugin.is_empty

    @property
    def state_limits(self) -> list[StateLimit]:
        """The limits of everything that clients create and the host keeps."""
        return [
            *self.topics.limits,
            self.logs.producer_ids.limit,
            *self.fetch_sessions.limits,
            *self.groups.limits,
            *self.transactions.limits,
            self.credentials.limit,
            *([] if self.acls is None else [self.acls.limit]),
            self.client_quotas.limit,
            *self.telemetry.subscriptions.limits,
        ]

    def check_new_group(self, group_id: str) -> None:
        """Check the id of a group that does not exist yet.

        Raises:
            ApiError: POLICY_VIOLATION: it is too long.
        """
        if group_id not in self.groups.groups:
            self.names.check("group id", group_id)

    def load_dynamic_config(self) -> None:
        """Put in force what is stored about this broker and about all brokers."""
        self.config = replace(
            self.config,
            cluster=self.metadata.resource(ResourceType.BROKER, ""),
            node=self.metadata.resource(ResourceType.BROKER, str(self.settings.node_id)),
        )
        self.topics.set_defaults(self.config.log_config())
        self.config.enforce(self.quotas, self.connection_quotas)
        self.certificates.update(self.config.certificate_texts())

    def finalize(self, levels: Mapping[str, int]) -> None:
        """Set the levels of features, for this run and those to come.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; the levels are unchanged.
        """
        changed = replace(self.features, levels=dict(self.features.levels))
        for name, level in levels.items():
            changed.finalize(name, level)
        self.metadata.put_value(FEATURES, json.dumps({"levels": changed.levels, "epoch": changed.epoch}))
        self.features.levels, self.features.epoch = changed.levels, changed.epoch

    def endpoint(self, connection: ConnectionContext) -> Endpoint:
        """The address to advertise on this connection."""
        return self.endpoints[connection.listener_name]
