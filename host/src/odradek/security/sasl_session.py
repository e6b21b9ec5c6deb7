"""How long a client may use its connection before it authenticates again (KIP-368)."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.waiting.clock import TimerTask

REAUTHENTICATION_INTERVAL_MS = 1_000
"""Least time between two re-authentications (KafkaChannel.MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS)."""


@dataclass(slots=True, eq=False)
class SaslSession:
    """The time between two authentications of a connection; it ends when the client has to do it again."""

    mechanism: str
    ends: TimerTask
    began_ms: int | None = None
    """Monotonic time when the latest re-authentication began; None before the first."""


@dataclass(slots=True, eq=False)
class AuthenticationCounts:
    """The attempts of the clients of one listener."""

    succeeded: int = 0
    failed: int = 0
    succeeded_again: int = 0
    """Re-authentications."""
    failed_again: int = 0
    again_ms: int = 0
    """Time of all successful re-authentications, each from its handshake to its end."""
    never_again: int = 0
    """Clients that cannot authenticate again: they send SaslAuthenticate v0, or bare tokens."""
    expired: int = 0
    """Connections closed because their clients were late to authenticate again."""

    def succeed(self, again: bool, took_ms: int) -> None:
        """Count a success."""
        if not again:
            self.succeeded += 1
            return
        self.succeeded_again += 1
        self.again_ms += took_ms

    def fail(self, again: bool) -> None:
        """Count a failure."""
        if again:
            self.failed_again += 1
        else:
            self.failed += 1


def lifetime_ms(max_reauth_ms: int, expires_ms: int | None, now_ms: int) -> int | None:
    """Return how long a session lasts; None if it ends with its connection.

    Args:
        max_reauth_ms: ``connections.max.reauth.ms``; 0 is no limit.
        expires_ms: When the client's credential expires, wall time; None if it does not.
        now_ms: Wall time.
    """
    limits = [max_reauth_ms] if max_reauth_ms else []
    if expires_ms is not None:
        limits.append(max(expires_ms - now_ms, 0))
    return min(limits, default=None)
