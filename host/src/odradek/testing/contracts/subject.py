"""The plugin under test, as its author describes it to the contract."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from odradek.plugin import TelemetryRecord

BUDGET_MS = 5.0
"""The host's default of ``plugin.slow.ms``."""
FORWARDER_BUDGET_MS = 100.0
"""Limit for blocking the separate loop of a forwarder, which delays its stop by this much."""


class Kind(StrEnum):
    """The kinds of plugins."""

    RECEIVER = "receiver"
    EXPORTER = "exporter"
    FORWARDER = "forwarder"
    ENRICHER = "enricher"
    QUOTA_CALLBACK = "quota callback"
    SOURCE = "source"


class Capability(StrEnum):
    """An optional capability of a plugin. A rule that needs a missing one is skipped."""

    CLOSE = "close"
    """The plugin has a method ``close``. Detected."""
    FAR_SIDE = "far_side"
    """`Subject.far_side` is set: the test controls the system that the plugin talks to."""
    ACCOUNTS = "accounts"
    """`Subject.accounts` is set: the plugin reports the outcome of each push."""
    FLUSH = "flush"
    """The plugin sends in the background, and has sent everything when ``close`` returns. Declared."""
    CONCURRENT = "concurrent"
    """The plugin may be called while another call is running, which the host never does. Declared."""
    UPDATES = "updates"
    """The quota callback uses the quotas that an operator sets. Declared."""
    SUPPLY = "supply"
    """`Subject.supply` is set: the test puts pushes where a source reads them."""


OF_THE_TEST = (Capability.FAR_SIDE, Capability.ACCOUNTS, Capability.SUPPLY)
"""The fields of `Subject` that a test sets."""


class FarSideState(StrEnum):
    """The behavior of the destination."""

    UP = "up"
    DOWN = "down"
    """It refuses connections."""
    SLOW = "slow"
    """It accepts a request but does not answer until the state changes."""
    REFUSING = "refusing"
    """It answers every request with a refusal."""


class FarSide(Protocol):
    """The system that the plugin under test talks to: a server in its own thread or a fake in the plugin.

    A fake must copy the bytes that it receives. Otherwise R3 would blame the plugin for keeping them.
    """

    def turn(self, state: FarSideState) -> None:
        """Change the behavior. The initial state is ``UP``. Called in the thread of the check."""

    def received(self) -> Iterable[bytes]:
        """All bytes accepted so far, decompressed and in any encoding.

        The kit finds its pushes in them by the names of their metrics.
        """


class Supply(Protocol):
    """The place of origin that a source under test reads, or the client that sends to it."""

    def put(self, pushes: Sequence[TelemetryRecord]) -> None:
        """Make pushes available, in order, as an origin does that keeps each until the source has it.

        Called in the thread of the check. Must not block.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """The outcomes of the pushes that a receiver was given, as numbers of pushes."""

    delivered: int = 0
    dropped: int = 0
    waiting: int = 0

    @property
    def total(self) -> int:
        return self.delivered + self.dropped + self.waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The plugin under test and what the rules need to know about it.

    Args:
        make: Creates a new object each time, as the hook returns it (for receivers the provider or the
            receiver itself).
        far_side: The destination of the plugin, controlled by the test; None if there is none or the
            test cannot control it.
        accounts: Returns the outcomes of pushes for an object that ``make`` returned; None if it does not
            count.
        supply: The place of origin of a source, filled by the test; None if the test cannot fill it.
        declares: Names of the declared capabilities.
        budget_ms: Time limit of one call; None for 5, or 100 for a forwarder's loop.
        close_s: Time limit of ``close``.
        patience_s: Time limit for a push to arrive, and for a plugin to reconnect to its destination.
        limit_s: Time limit of a whole rule; a rule that takes longer is reported as hanging.
    """

    make: Callable[[], Any]
    far_side: FarSide | None = None
    accounts: Callable[[Any], Accounts] | None = None
    supply: Supply | None = None
    declares: frozenset[str] = frozenset()
    budget_ms: float | None = None
    close_s: float = 2.0
    patience_s: float = 2.0
    limit_s: float = 15.0

    def lacks(self, capability: Capability) -> str | None:
        """The reason why the plugin lacks a capability; None if it has it."""
        if capability is Capability.CLOSE:
            return None if callable(getattr(self.make(), "close", None)) else "it has no close method"
        if capability in OF_THE_TEST:
            return None if getattr(self, capability) is not None else f"Subject.{capability} is not set"
        return None if capability in self.declares else f"it does not declare {capability.value!r}"

    def turn(self, state: FarSideState) -> None:
        """Change the behavior of the destination, if there is one."""
        if self.far_side is not None:
            self.far_side.turn(state)
