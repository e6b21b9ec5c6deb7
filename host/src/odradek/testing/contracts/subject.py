"""What a contract is held against, as the author of a plugin describes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

BUDGET_MS = 5.0
"""The host's default of ``plugin.slow.ms``."""
FORWARDER_BUDGET_MS = 100.0
"""A forwarder has a loop of its own; this much later at most it hears that it shall stop."""


class Kind(StrEnum):
    """What a plugin can be."""

    RECEIVER = "receiver"
    EXPORTER = "exporter"
    FORWARDER = "forwarder"
    ENRICHER = "enricher"
    QUOTA_CALLBACK = "quota callback"


class Capability(StrEnum):
    """What not every plugin can do. A rule that needs one is skipped where it is missing."""

    CLOSE = "close"
    """It has a method ``close``. Seen, not declared."""
    FAR_SIDE = "far_side"
    """`Subject.far_side` is there: the test has what the plugin talks to in its hand."""
    ACCOUNTS = "accounts"
    """`Subject.accounts` is there: the plugin says what became of each push."""
    FLUSH = "flush"
    """Sends in the background, and has sent all when ``close`` returns. Declared."""
    CONCURRENT = "concurrent"
    """May be called while another call is running. Declared; the host does not do it."""
    UPDATES = "updates"
    """Answers with the quota that an operator has set. Declared."""


class FarSideState(StrEnum):
    """What the far side does from now on."""

    UP = "up"
    DOWN = "down"
    """Nobody is there: connections are refused."""
    SLOW = "slow"
    """It takes a request and does not answer until the state changes."""
    REFUSING = "refusing"
    """It answers that it does not want this."""


class FarSide(Protocol):
    """What the plugin under test talks to: on a thread of its own, or a fake inside the plugin. A fake keeps
    copies, or it is taken for the plugin that keeps what it was given.
    """

    def turn(self, state: FarSideState) -> None:
        """Behave like that from now on. Begins as ``UP``. Called on the thread of the check."""

    def received(self) -> Iterable[bytes]:
        """All that arrived and was taken since the beginning, decompressed, in any encoding: the kit finds
        its pushes in it by the names of their metrics.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What became of the pushes that a receiver was given, in pushes."""

    delivered: int = 0
    dropped: int = 0
    waiting: int = 0

    @property
    def total(self) -> int:
        return self.delivered + self.dropped + self.waiting


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A plugin as a rule sees it.

    Args:
        make: A new one each time: what the hook returns (for receivers the provider, or the receiver itself).
        far_side: What it talks to; None when it talks to nobody, or nobody the test can reach.
        accounts: Given what ``make`` returned, what became of its pushes; None when it does not count.
        declares: `Capability` of the declared kind, by name.
        budget_ms: How long one call may take; None for 5, and 100 for a forwarder's loop.
        close_s: How long ``close`` may take.
        patience_s: How long a push may be on its way, and a plugin may need to find its far side again.
        limit_s: How long a whole rule may take: what is not over by then hangs.
    """

    make: Callable[[], Any]
    far_side: FarSide | None = None
    accounts: Callable[[Any], Accounts] | None = None
    declares: frozenset[str] = frozenset()
    budget_ms: float | None = None
    close_s: float = 2.0
    patience_s: float = 2.0
    limit_s: float = 15.0

    def lacks(self, capability: Capability) -> str | None:
        """Why it does not have the capability; None when it has."""
        match capability:
            case Capability.CLOSE:
                return None if callable(getattr(self.make(), "close", None)) else "it has no method close"
            case Capability.FAR_SIDE:
                return None if self.far_side is not None else "no far side in the test's hand"
            case Capability.ACCOUNTS:
                return None if self.accounts is not None else "its accounts are not known"
            case _:
                return None if capability in self.declares else f"it does not declare {capability.value!r}"

    def turn(self, state: FarSideState) -> None:
        """Turn the far side, if there is one."""
        if self.far_side is not None:
            self.far_side.turn(state)
