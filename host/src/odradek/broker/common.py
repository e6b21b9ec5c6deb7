"""The parts that all requests share: files, topics, the limits of clients, the audit log.

Programs make it of open files and the real clock, tests of stores in memory and a virtual clock.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Protocol

from odradek.broker.audit import Audit, AuditSettings
from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.client_quotas import ClientQuotas
from odradek.broker.throttled_replicas import mark_throttled
from odradek.broker.topic_changes import ChangeableTopics
from odradek.group.group_config import GroupConfig
from odradek.group.group_offsets import OffsetStore
from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.metadata.cluster_id import cluster_id
from odradek.metadata.store import MetadataStore
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaManagers
from odradek.security.authorizer_settings import AuthorizerSettings
from odradek.settings.start_values import StartValue
from odradek.settings.state_limit import NameLimit, Refusals
from odradek.transaction.transaction_config import TransactionConfig
from odradek.transaction.transaction_log import TransactionStore
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.step_runner import StepRunner


class Configuration(Protocol):
    """The sections of the configuration that requests need."""

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
    """The open files of one program."""

    @property
    def metadata(self) -> MetadataStore: ...

    @property
    def logs(self) -> LogManager: ...

    @property
    def offsets(self) -> OffsetStore: ...

    @property
    def transactions(self) -> TransactionStore: ...


class Common:
    """The parts that all requests share.

    Args:
        config: The configuration.
        stores: The files.
        clock: The time.
        timer: Runs what is to happen later.
        quotas: Measures and throttles clients.
        connection_quotas: Limits connections.
        steps: Runs the work of large requests.
        random_uuid: Makes the ids of topics, members and cluster.

    Raises:
        ApiError, OSError, StoreError, ValueError: A store is damaged, or cannot be read or written.
    """

    def __init__(
        self,
        config: Configuration,
        stores: Stores,
        clock: Clock,
        timer: Timer,
        quotas: QuotaManagers,
        connection_quotas: ConnectionQuotas,
        steps: StepRunner,
        random_uuid: Callable[[], bytes],
    ) -> None:
        settings = config.broker
        self.config, self.stores, self.clock, self.timer = config, stores, clock, timer
        self.quotas, self.connection_quotas, self.steps = quotas, connection_quotas, steps
        self.random_uuid = random_uuid
        self.metadata = stores.metadata
        self.cluster_id = cluster_id(stores.metadata, random_uuid)
        self.names = NameLimit(settings.name_max_length, Refusals(clock))
        self.audit = Audit(clock, timer, config.audit)
        self.topics = ChangeableTopics(
            stores.metadata,
            stores.logs,
            clock,
            random_uuid,
            config.log_defaults,
            partial(mark_throttled, quotas, settings.node_id),
            settings.max_topics,
            settings.max_partitions,
        )
        self.client_quotas = ClientQuotas(
            stores.metadata, quotas, connection_quotas.hosts, self.names, settings.max_client_quotas, clock
        )
