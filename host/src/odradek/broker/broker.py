"""The broker: everything that a handler may reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from odradek.broker.answering import Answering, PushHandling
from odradek.broker.authorization import Authorization
from odradek.broker.broker_settings import Endpoint
from odradek.broker.certificate_store import CertificateStore, NoCertificates
from odradek.broker.common import Common
from odradek.broker.credentials import Credentials
from odradek.broker.dynamic_config import DynamicConfig
from odradek.broker.features import Features
from odradek.broker.fetch.fetch_session import FetchSessionCache
from odradek.broker.group_topics import GroupTopics
from odradek.broker.nodes import Nodes
from odradek.broker.share.shares import Shares
from odradek.broker.transactions.lost_transactions import abort_lost
from odradek.broker.transactions.transaction_participants import Participants
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.group_properties import in_force
from odradek.group.share_config import ShareGroupConfig
from odradek.group.streams_config import StreamsGroupConfig
from odradek.log.batch_work import BatchOffload
from odradek.metadata.store import MetadataStore
from odradek.plugin.authorizer import Authorizer
from odradek.plugin.context import ConnectionContext
from odradek.settings.state_limit import NameLimit, StateLimit
from odradek.transaction.transaction_coordinator import TransactionCoordinator
from odradek.waiting.clock import Clock
from odradek.waiting.deferred import offload_inline
from odradek.wire.config_resource import ResourceType

if TYPE_CHECKING:
    from odradek.broker.acls import Acls
    from odradek.broker.connection_uses import ConnectionUses
    from odradek.broker.fetch.fetch_reads import FetchReads
    from odradek.security.sasl_authenticator import SaslAuthenticator

T = TypeVar("T")
FEATURES = "features"
"""The host's own value that has the levels of features, as JSON."""


def make_groups(common: Common) -> GroupCoordinator:
    """The groups that the stores describe. Lost transactions are aborted first."""
    metadata, clock, topics = common.metadata, common.clock, common.topics
    abort_lost(metadata, common.stores.logs, clock.now_ms())
    config = common.config.groups
    groups = GroupCoordinator(
        config,
        clock,
        common.timer,
        common.random_uuid,
        common.stores.offsets,
        GroupTopics(topics),
        partial(common.steps.answer, droppable=True),
        own_configs={
            name: in_force(metadata.resource(ResourceType.GROUP, name), config)
            for name in metadata.resource_names(ResourceType.GROUP)
        },
    )
    topics.listeners.append(groups.topics_changed)
    return groups


class Broker(Answering):
    """The rooms of one host, in the state that its stores describe; driven by the program's loop.

    A part gets everything it needs when it is made. Only `Topics.listeners` is filled later: groups read
    topics, and must be notified of changes to topics. The transaction coordinator is not started.

    Args:
        common: What all requests share.
        pushes: What becomes of pushes.
        groups: Those of the stores.
        random_session_id: Makes the ids of fetch sessions.
        offload: Validates large record batches.
        authorizer: Decides what callers may do; None to allow everything.
        certificates: Those of TLS listeners.

    Raises:
        ApiError, OSError, StoreError, ValueError: A store is damaged, or cannot be read or written.
    """

    def __init__(
        self,
        common: Common,
        pushes: PushHandling,
        groups: GroupCoordinator,
        random_session_id: Callable[[], int],
        *,
        offload: BatchOffload = offload_inline,
        authorizer: Authorizer | None = None,
        certificates: CertificateStore | None = None,
    ) -> None:
        super().__init__(common, pushes, Authorization(authorizer, common.audit.denied))
        config, stores, metadata, clock = common.config, common.stores, common.metadata, common.clock
        settings = config.broker
        self.cluster_id, self.topics = common.cluster_id, common.topics
        self.logs, self.groups = stores.logs, groups
        self.connection_quotas, self.client_quotas = common.connection_quotas, common.client_quotas
        self.start_values = config.start_values
        """All settings of the host by key, as of its start."""
        self.transactions = TransactionCoordinator(
            config=config.transactions,
            clock=clock,
            timer=common.timer,
            store=stores.transactions,
            participants=Participants(common.topics, groups.offsets, clock),
            new_producer_id=metadata.allocate_producer_id,
        )
        self.fetch_sessions = FetchSessionCache(
            settings.max_incremental_fetch_session_cache_slots,
            random_session_id,
            settings.max_fetch_session_partitions,
        )
        stored = json.loads(metadata.value(FEATURES) or "{}")
        self.features = Features(levels=stored.get("levels", {}), epoch=stored.get("epoch", 0))
        self.shares = Shares(
            groups.share_config,
            stores.offsets.shares,
            clock,
            common.timer,
            groups.config.share.max_share_sessions,
            settings.max_fetch_session_partitions,
            self.features,
            common.topics,
            common.steps,
            settings.num_partitions,
        )
        groups.shares.dropped = self.shares.dropped
        self.fetch_reads: FetchReads | None = None
        """None if nobody wants to know what clients read."""
        self.uses: ConnectionUses | None = None
        """None if nobody wants to know who uses which topic."""
        self.credentials = Credentials(metadata, common.names, settings.max_users, clock)
        self.acls = stored_acls(metadata, authorizer, common.names, config.authorizer.max_acls, clock)
        """None without the standard authorizer."""
        self.offload = offload
        self.certificates = certificates or NoCertificates()
        self.authenticators: dict[str, SaslAuthenticator] = {}
        """By connection id: connections of SASL listeners that have not authenticated, or will do so
        again."""
        self.endpoints: dict[str, Endpoint] = {}
        """Advertised addresses by listener name; a client gets that of the listener it is connected to."""
        self.nodes = Nodes(self.settings.node_id, self.endpoint)
        limits = self.connection_quotas.configured
        self.config = DynamicConfig(self.start_values, config.log_defaults, limits)
        if metadata.resource_names(ResourceType.BROKER):
            self.load_dynamic_config()
        self.follow(stores.logs.producer_ids.config, stores.logs.producer_ids.use_config)
        self.follow(groups.config, self.use_group_config)
        self.follow(groups.config.share, self.use_share_config)
        self.follow(groups.config.streams, self.use_streams_config)

    @property
    def state_limits(self) -> list[StateLimit]:
        """The limits of everything that clients create and the host keeps."""
        return [
            *self.topics.limits,
            self.logs.producer_ids.limit,
            *self.fetch_sessions.limits,
            *self.groups.limits,
            *self.shares.sessions.limits,
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
        own = self.groups.config
        self.apply_group_config(replace(config, share=own.share, streams=own.streams))

    def use_share_config(self, config: ShareGroupConfig) -> None:
        """The same for the settings of share groups."""
        self.apply_group_config(replace(self.groups.config, share=config))

    def use_streams_config(self, config: StreamsGroupConfig) -> None:
        """The same for the settings of streams groups."""
        self.apply_group_config(replace(self.groups.config, streams=config))

    def apply_group_config(self, config: GroupConfig) -> None:
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
