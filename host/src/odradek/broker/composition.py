"""The composition root of the broker: makes the rooms of one host and connects them.

Programs call it with open files and the real clock, tests with stores in memory and a virtual clock. A part
gets everything it needs when it is made. Only `Topics.listeners` is filled later: groups read topics, and
must be notified of changes to topics.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from odradek.broker.answering import TelemetrySink
from odradek.broker.audit import Audit, AuditSettings
from odradek.broker.authorization import Authorization
from odradek.broker.broker import FEATURES, Broker
from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.certificate_store import CertificateStore, NoCertificates
from odradek.broker.client_quotas import ClientQuotas
from odradek.broker.credentials import Credentials
from odradek.broker.dynamic_config import DynamicConfig
from odradek.broker.features import Features
from odradek.broker.fetch.fetch_session import FetchSessionCache
from odradek.broker.group_topics import GroupTopics
from odradek.broker.topic_changes import ChangeableTopics
from odradek.broker.transactions.lost_transactions import abort_lost
from odradek.broker.transactions.transaction_participants import Participants
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.group_offsets import OffsetStore
from odradek.log.batch_work import BatchOffload
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.metadata.cluster_id import cluster_id
from odradek.metadata.store import MetadataStore
from odradek.plugin.authorizer import Authorizer
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaManagers
from odradek.security.authorizer_settings import AuthorizerSettings
from odradek.settings.start_values import StartValue
from odradek.settings.state_limit import NameLimit
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.transaction.transaction_config import TransactionConfig
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.transaction.transaction_log import TransactionStore
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.deferred import offload_inline
from odradek.waiting.step_runner import StepRunner
from odradek.wire.config_resource import ResourceType

if TYPE_CHECKING:
    from odradek.broker.acls import Acls
    from odradek.estimate.subscription_estimates import SubscriptionEstimates


class Configuration(Protocol):
    """The sections of the host's configuration that the broker needs."""

    @property
    def broker(self) -> BrokerSettings: ...

    @property
    def audit(self) -> AuditSettings: ...

    @property
    def log_defaults(self) -> LogConfig: ...

    @property
    def groups(self) -> GroupConfig: ...

    @property
    def transactions(self) -> TransactionConfig: ...

    @property
    def authorizer(self) -> AuthorizerSettings: ...

    @property
    def start_values(self) -> Mapping[str, StartValue]: ...


class Stores(Protocol):
    """The open files of one host."""

    @property
    def metadata(self) -> MetadataStore: ...

    @property
    def logs(self) -> LogManager: ...

    @property
    def offsets(self) -> OffsetStore: ...

    @property
    def transactions(self) -> TransactionStore: ...


def compose_groups(
    config: Configuration,
    stores: Stores,
    topics: ChangeableTopics,
    steps: StepRunner,
    clock: Clock,
    timer: Timer,
    random_uuid: Callable[[], bytes],
) -> GroupCoordinator:
    """The groups that the stores describe. Lost transactions are aborted first."""
    abort_lost(stores.metadata, stores.logs, clock.now_ms())
    compute = partial(steps.answer, droppable=True)
    groups = GroupCoordinator(
        config.groups, clock, timer, random_uuid, stores.offsets, GroupTopics(topics), compute
    )
    topics.listeners.append(groups.topics_changed)
    for name in stores.metadata.resource_names(ResourceType.GROUP):
        groups.configure(name, stores.metadata.resource(ResourceType.GROUP, name))
    return groups


def compose_broker(
    config: Configuration,
    stores: Stores,
    *,
    clock: Clock,
    timer: Timer,
    topics: ChangeableTopics,
    groups: GroupCoordinator,
    steps: StepRunner,
    telemetry: ClientMetricsManager,
    quotas: QuotaManagers,
    connection_quotas: ConnectionQuotas,
    client_quotas: ClientQuotas,
    names: NameLimit,
    audit: Audit,
    random_uuid: Callable[[], bytes],
    random_session_id: Callable[[], int],
    offload: BatchOffload = offload_inline,
    authorizer: Authorizer | None = None,
    sink: TelemetrySink | None = None,
    estimates: SubscriptionEstimates | None = None,
    followed_cluster: str | None = None,
    certificates: CertificateStore | None = None,
) -> Broker:
    """A broker in the state that its stores describe; the transaction coordinator is not started.

    Args:
        config: The configuration.
        stores: The files.
        clock: The time.
        timer: Runs what is to happen later.
        topics: Those of the stores.
        groups: Likewise.
        steps: Runs the work of large requests.
        telemetry: Makes and checks pushes.
        quotas: Measures and throttles clients.
        connection_quotas: Limits connections.
        client_quotas: The quotas of the stores.
        names: The limit of names.
        audit: Takes note of what was refused, and of what was changed.
        random_uuid: Makes the ids of topics, members and cluster.
        random_session_id: Makes the ids of fetch sessions.
        offload: Validates large record batches.
        authorizer: Decides what callers may do; None to allow everything.
        sink: Takes accepted pushes; None if they only go to receivers.
        estimates: Of changed subscriptions; None if they are off.
        followed_cluster: Has the CLIENT_METRICS resources in force; None if this broker has them.
        certificates: Those of TLS listeners.

    Raises:
        ApiError, OSError, StoreError, ValueError: A store is damaged, or cannot be read or written.
    """
    metadata = stores.metadata
    transactions = TransactionCoordinator(
        config=config.transactions,
        clock=clock,
        timer=timer,
        store=stores.transactions,
        participants=Participants(topics, groups.offsets, clock),
        new_producer_id=metadata.allocate_producer_id,
    )
    broker = Broker(
        settings=config.broker,
        start_values=config.start_values,
        cluster_id=cluster_id(metadata, random_uuid),
        clock=clock,
        timer=timer,
        metadata=metadata,
        logs=stores.logs,
        topics=topics,
        telemetry=telemetry,
        groups=groups,
        transactions=transactions,
        fetch_sessions=FetchSessionCache(
            config.broker.max_incremental_fetch_session_cache_slots,
            random_session_id,
            config.broker.max_fetch_session_partitions,
        ),
        quotas=quotas,
        connection_quotas=connection_quotas,
        names=names,
        audit=audit,
        authorization=Authorization(authorizer, audit.denied),
        client_quotas=client_quotas,
        acls=stored_acls(metadata, authorizer, names, config.authorizer.max_acls, clock),
        credentials=Credentials(metadata, names, config.broker.max_users, clock),
        features=stored_features(metadata),
        config=DynamicConfig(config.start_values, config.log_defaults, connection_quotas.configured),
        steps=steps,
        offload=offload,
        sink=sink,
        estimates=estimates,
        followed_cluster=followed_cluster,
        certificates=certificates or NoCertificates(),
    )
    if metadata.resource_names(ResourceType.BROKER):
        broker.load_dynamic_config()
    broker.follow(stores.logs.producer_ids.config, stores.logs.producer_ids.use_config)
    broker.follow(groups.config, broker.use_group_config)
    return broker


def stored_acls(
    metadata: MetadataStore, authorizer: Authorizer | None, names: NameLimit, max_acls: int, clock: Clock
) -> Acls | None:
    """The ACLs of the metadata file, which its own authorizer asks; None without that authorizer."""
    if authorizer is None:
        return None
    from odradek.broker.acls import Acls  # not at the top: a host without an authorizer starts without them
    from odradek.security.standard_authorizer import StandardAuthorizer

    if not isinstance(authorizer, StandardAuthorizer):
        return None
    return Acls(metadata, authorizer, names, max_acls, clock)


def stored_features(metadata: MetadataStore) -> Features:
    """The features with the levels that an operator has set."""
    stored = json.loads(metadata.value(FEATURES) or "{}")
    return Features(levels=stored.get("levels", {}), epoch=stored.get("epoch", 0))
