"""Share groups as the handlers see them: sessions, deliveries, and the settings of each group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from odradek.broker.features import SHARE_VERSION, Features
from odradek.broker.share.dead_letters import DeadLetters
from odradek.broker.topic_changes import ChangeableTopics
from odradek.group.share_config import ShareGroupConfig
from odradek.share.acquisition import Limits
from odradek.share.deliveries import Deliveries, Delivery, PartitionKey, StateStore
from odradek.share.share_sessions import ShareSession, ShareSessions
from odradek.waiting.clock import Clock, Timer
from odradek.waiting.step_runner import StepRunner

DEAD_LETTERS_LEVEL = 2
"""From this level of ``share.version`` on there are dead-letter topics."""


def limits_of(config: Callable[[str], ShareGroupConfig], features: Features, group_id: str) -> Limits:
    """The settings that the deliveries of a group follow."""
    found = config(group_id)
    return Limits(
        lock_ms=found.record_lock_duration_ms,
        most_deliveries=found.delivery_count_limit,
        in_flight=found.partition_max_record_locks,
        may_renew=found.renew_acknowledge_enable,
        has_dead_letters=bool(found.dead_letter_topic)
        and features.level(SHARE_VERSION) >= DEAD_LETTERS_LEVEL,
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
        features: Decide whether there are dead-letter topics.
        topics: All topics.
        steps: Writes dead letters.
        num_partitions: Of a dead-letter topic that is made.
    """

    def __init__(
        self,
        config: Callable[[str], ShareGroupConfig],
        store: StateStore,
        clock: Clock,
        timer: Timer,
        max_sessions: int,
        max_session_partitions: int,
        features: Features,
        topics: ChangeableTopics,
        steps: StepRunner,
        num_partitions: int,
    ) -> None:
        self.config = config
        self.limits = partial(limits_of, config, features)
        """The settings that the deliveries of a group follow."""
        self.deliveries = Deliveries(store, clock, timer, self.limits, self.bury)
        self.letters = DeadLetters(self.deliveries, topics, config, num_partitions, steps, clock)
        self.sessions = ShareSessions(max_sessions, max_session_partitions, clock)

    def bury(self, delivery: Delivery) -> None:
        """Write what a partition has given up to a topic."""
        self.letters.bury(delivery)

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
