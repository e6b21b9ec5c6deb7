"""The broker: everything that a handler may reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.answering import Answering
from odradek.broker.broker_settings import Endpoint
from odradek.broker.certificate_store import CertificateStore, NoCertificates
from odradek.broker.client_quotas import ClientQuotas
from odradek.broker.credentials import Credentials
from odradek.broker.dynamic_config import DynamicConfig
from odradek.broker.features import Features
from odradek.broker.fetch.fetch_session import FetchSessionCache
from odradek.broker.topic_changes import ChangeableTopics
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.log.batch_work import BatchOffload
from odradek.log.log_manager import LogManager
from odradek.plugin.context import ConnectionContext
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.settings.start_values import StartValue
from odradek.settings.state_limit import StateLimit
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.waiting.deferred import offload_inline
from odradek.wire.config_resource import ResourceType

if TYPE_CHECKING:
    from odradek.broker.acls import Acls
    from odradek.security.sasl_authenticator import SaslAuthenticator

T = TypeVar("T")
FEATURES = "features"
"""The host's own value that has the levels of features, as JSON."""


@dataclass(slots=True, kw_only=True)
class Broker(Answering):
    """The rooms of one host, as `compose_broker` connects them; driven by the program's loop."""

    start_values: Mapping[str, StartValue]
    """All settings of the host by key, as of its start."""
    cluster_id: str
    logs: LogManager
    topics: ChangeableTopics
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    fetch_sessions: FetchSessionCache
    connection_quotas: ConnectionQuotas
    client_quotas: ClientQuotas
    credentials: Credentials
    features: Features
    config: DynamicConfig
    acls: Acls | None = None
    """None without the standard authorizer."""
    offload: BatchOffload = offload_inline
    """Validates large record batches."""
    authenticators: dict[str, SaslAuthenticator] = field(default_factory=dict)
    """By connection id: connections of SASL listeners that have not authenticated, or will do so again."""
    certificates: CertificateStore = field(default_factory=NoCertificates)
    """The certificates of TLS listeners."""
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    """Advertised addresses by listener name; a client gets the address of the listener it is connected to."""

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

    def follow(self, start: T, use: Callable[[T], object]) -> None:
        """Put settings of a room in force whenever they change at run time, and now.

        Args:
            start: The settings at the start.
            use: Takes the changed ones.
        """
        self.config.rooms.append((start, use))
        use(self.config.of_room(start))

    def use_group_config(self, config: GroupConfig) -> None:
        """Use changed settings of groups; those that groups have of their own still come first."""
        if config != self.groups.config:
            self.groups.use_config(config)
            for name in self.metadata.resource_names(ResourceType.GROUP):
                self.groups.configure(name, self.metadata.resource(ResourceType.GROUP, name))

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
