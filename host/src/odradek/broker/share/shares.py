"""Share groups as the handlers see them: sessions, deliveries, and the settings of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
        config: The settings of a group.
        store: Keeps the states of deliveries.
        clock: The time.
        timer: Ends locks.
        max_sessions: ``group.share.max.share.sessions``.
        max_session_partitions: ``fetch.session.partitions.max``.
    """

    def __init__(
        self,
        config: Callable[[str], ShareGroupConfig],
        store: StateStore,
        clock: Clock,
        timer: Timer,
        max_sessions: int,
        max_session_partitions: int,
    ) -> None:
        self.config = config
        self.deliveries = Deliveries(store, clock, timer, lambda group_id: limits_of(config(group_id)))
        self.sessions = ShareSessions(max_sessions, max_session_partitions, clock)

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
