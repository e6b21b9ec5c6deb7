"""Share sessions: a member names its partitions once, and is released when its connection ends (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from odradek.settings.state_limit import StateLimit
from odradek.share.deliveries import Delivery, PartitionKey
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX

INITIAL_EPOCH: Final = 0
"""Opens a session, instead of an older one."""
FINAL_EPOCH: Final = -1
"""Closes the session."""
SESSIONS_KEY: Final = "group.share.max.share.sessions"
PARTITIONS_KEY: Final = "fetch.session.partitions.max"

SessionKey = tuple[str, str]
"""Group and member."""


@dataclass(slots=True, eq=False)
class ShareSession:
    """What one member fetches from."""

    key: SessionKey
    connection_id: str
    epoch: int = 1
    """Of the next request."""
    partitions: dict[PartitionKey, str | None] = field(default_factory=dict)
    """With the names of their topics, as far as they are known; those with the latest records come last."""
    holding: set[Delivery] = field(default_factory=set)
    """From which the member has got records."""

    def move_to_end(self, keys: Iterable[PartitionKey]) -> None:
        """Give the other partitions their turn."""
        for key in keys:
            if key in self.partitions:
                self.partitions[key] = self.partitions.pop(key)


@dataclass(slots=True, eq=False)
class ShareSessions:
    """The sessions of all members.

    Args:
        most: ``group.share.max.share.sessions``.
        most_partitions: ``fetch.session.partitions.max``, which counts these sessions by themselves.
        clock: Paces the log of refusals.
    """

    most: int
    most_partitions: int
    clock: Clock | None = None
    sessions: dict[SessionKey, ShareSession] = field(default_factory=dict)
    connections: dict[str, set[SessionKey]] = field(default_factory=dict)
    partitions: int = 0
    """Of all sessions."""

    @property
    def limits(self) -> list[StateLimit]:
        """For the metrics, and the start."""
        return [
            StateLimit("share sessions", SESSIONS_KEY, self.most, lambda: len(self.sessions)),
            StateLimit(
                "partitions of share sessions", PARTITIONS_KEY, self.most_partitions, lambda: self.partitions
            ),
        ]

    def opened(self, key: SessionKey, connection_id: str) -> ShareSession:
        """Open a session; what the member holds from an older one stays its own.

        Raises:
            ApiError: SHARE_SESSION_LIMIT_REACHED.
        """
        old = self.sessions.get(key)
        if old is None and len(self.sessions) >= self.most:
            raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        if old is not None:
            self.remove(old)
        session = ShareSession(key, connection_id)
        if old is not None:
            session.holding = old.holding
        self.sessions[key] = session
        self.connections.setdefault(connection_id, set()).add(key)
        return session

    def continued(self, key: SessionKey, epoch: int) -> ShareSession:
        """The session of a request that does not open one; it has used up its epoch.

        Raises:
            ApiError: SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH; the session is unchanged.
        """
        session = self.sessions.get(key)
        if session is None:
            raise ApiError(ErrorCode.SHARE_SESSION_NOT_FOUND)
        if epoch == FINAL_EPOCH:
            return session
        if epoch != session.epoch:
            raise ApiError(ErrorCode.INVALID_SHARE_SESSION_EPOCH)
        session.epoch = 1 if epoch == INT32_MAX else epoch + 1
        return session

    def add(self, session: ShareSession, key: PartitionKey, topic: str | None) -> None:
        """Take a partition into a session.

        Raises:
            ApiError: SHARE_SESSION_LIMIT_REACHED: all sessions together have too many.
        """
        if key not in session.partitions:
            if self.partitions >= self.most_partitions:
                raise ApiError(ErrorCode.SHARE_SESSION_LIMIT_REACHED)
            self.partitions += 1
        session.partitions[key] = topic

    def forget(self, session: ShareSession, key: PartitionKey) -> None:
        """Take a partition out of a session."""
        if key in session.partitions:
            del session.partitions[key]
            self.partitions -= 1

    def remove(self, session: ShareSession) -> None:
        """End a session. Its member still holds what it has got."""
        del self.sessions[session.key]
        self.partitions -= len(session.partitions)
        keys = self.connections[session.connection_id]
        keys.discard(session.key)
        if not keys:
            del self.connections[session.connection_id]

    def of_connection(self, connection_id: str) -> list[ShareSession]:
        """The sessions that a connection has opened."""
        return [self.sessions[key] for key in self.connections.get(connection_id, ())]
