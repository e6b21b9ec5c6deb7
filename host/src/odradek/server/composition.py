"""Parts of the broker that are made out of the configuration, the plugins and the open storage."""

from __future__ import annotations

from collections.abc import Sequence

from odradek.broker.topics import Topics
from odradek.broker.transactions.transaction_participants import Participants
from odradek.clock import Clock, Timer
from odradek.group.group_offsets import GroupOffsets
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.guarded_callback import GuardedCallback
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.server.config import HostConfig
from odradek.server.plugins.active_plugin import ActivePlugin, quota_callback
from odradek.server.sockets.host_lookup import look_up
from odradek.server.upkeep.storage import Storage
from odradek.transaction.transaction_config import TransactionConfig
from odradek.transaction.transaction_coordinator import TransactionCoordinator


def make_transactions(
    config: TransactionConfig,
    clock: Clock,
    timer: Timer,
    storage: Storage,
    topics: Topics,
    offsets: GroupOffsets,
) -> TransactionCoordinator:
    """Return a coordinator that has not been started."""
    return TransactionCoordinator(
        config=config,
        clock=clock,
        timer=timer,
        store=storage.transactions,
        participants=Participants(topics, offsets, clock),
        new_producer_id=storage.metadata.allocate_producer_id,
    )


def make_quotas(
    configs: QuotaConfigs, clock: Clock, timer: Timer, plugins: Sequence[ActivePlugin]
) -> QuotaManagers:
    """Return the managers of quotas, with the callback of a plugin if one has it.

    Raises:
        ConfigError: More than one plugin has a callback.
    """
    found = quota_callback(plugins)
    callback = None if found is None else GuardedCallback(*found, clock)
    return QuotaManagers(configs, clock, callback, timer)


def make_connection_quotas(config: HostConfig, clock: Clock, timer: Timer) -> ConnectionQuotas:
    """Return the limits of connections."""
    inter_broker = config.inter_broker_listener or "PLAINTEXT"
    return ConnectionQuotas(clock, timer, config.quotas.client, config.connections, inter_broker, look_up)
