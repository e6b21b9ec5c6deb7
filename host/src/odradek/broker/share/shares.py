"""Share groups as the handlers see them: sessions, deliveries, and the settings of each group."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.group.group_coordinator import GroupCoordinator
from odradek.group.share_config import ShareGroupConfig
from odradek.share.acquisition import Limits
from odradek.share.deliveries import Deliveries, PartitionKey, StateStore
from odradek.share.share_sessions import ShareSession, ShareSessions
from odradek.waiting.clock import Clock, Timer


def limits_of(config: ShareGroupConfig) -> Limits:
    """The settings that deliveries follow."""
    return Limits(
        lock_ms=config.record_lock_duration_ms,
        most_deliveries=config.delivery_count_limit,
        in_flight=config.partition_max_record_locks,
        may_renew=config.renew_acknowledge_enable,
    )


class Shares:
    """Everything about share groups that fetches need.

    Args:
        groups: Their settings.
        store: Keeps the states of deliveries.
        clock: The time.
        timer: Ends locks.
        max_session_partitions: ``fetch.session.partitions.max``.
    """

    def __init__(
        self,
        groups: GroupCoordinator,
        store: StateStore,
        clock: Clock,
        timer: Timer,
        max_session_partitions: int,
    ) -> None:
        self.groups = groups
        self.deliveries = Deliveries(store, clock, timer, self.limits)
        most = groups.config.share.max_share_sessions
        self.sessions = ShareSessions(most, max_session_partitions, clock)

    def config(self, group_id: str) -> ShareGroupConfig:
        """The settings of a group."""
        return self.groups.own_configs.get(group_id, self.groups.config).share

    def limits(self, group_id: str) -> Limits:
        """Those that its deliveries follow."""
        return limits_of(self.config(group_id))

    def close(self, session: ShareSession) -> None:
        """End a session, and release what its member holds."""
        self.sessions.remove(session)
        self.deliveries.release(session.key[1], session.holding)

    def connection_closed(self, connection_id: str) -> None:
        """End the sessions of a connection."""
        for session in self.sessions.of_connection(connection_id):
            self.close(session)

    def dropped(self, group_id: str, partitions: Iterable[PartitionKey] | None) -> None:
        """Forget deliveries whose states were deleted, or set by an operator."""
        self.deliveries.forget(group_id, partitions)
