"""The labels of one client on one connection, as far as the enrichers have told them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from odradek.otlp.labels import EncodedLabels
from odradek.plugin.later import Later
from odradek.plugin.plugin_stats import PluginStats
from odradek.plugin.protocols import Enricher
from odradek.waiting.clock import TimerTask
from odradek.waiting.deferred import Deferred

PAST_MS: Final = -(2**63)
"""Before every moment of the monotonic clock."""
FOREVER_MS: Final = 2**63 - 1
MAX_CHANGED: Final = 4_096
"""Principals whose labels have changed, one by one; with more of them all may have changed."""

Labels = EncodedLabels | None


class Aside(Protocol):
    """Does the work of one enricher that blocks or waits."""

    def call(self, blocking: Callable[[], object]) -> Later:
        """Call on another thread.

        Raises:
            Exception: Too many calls wait for a thread.
        """

    def run(self, later: Later) -> None:
        """Run its awaitable on the plugin's loop, and give it the outcome."""

    def cancel(self, later: Later) -> None:
        """Nobody waits for it any more."""

    def on_loop(self, action: Callable[[], object]) -> None:
        """Run an action on the host's loop. Call on any thread."""

    def close(self, timeout_s: float) -> None:
        """End the threads; one that does not end in time is left behind."""


@dataclass(slots=True, eq=False)
class Entry:
    """An enricher of the host."""

    enricher: Enricher
    stats: PluginStats
    aside: Aside
    blocks: bool
    ttl_ms: int | None
    is_late: bool = False
    """An answer of it came later."""
    awaited: int = 0
    """How many of its answers are awaited."""


@dataclass(slots=True, eq=False)
class Answer:
    """The last answer of an enricher about a client, and the one that is awaited."""

    entry: Entry
    labels: dict[str, str] | None = None
    """None: nothing yet."""
    due_ms: int = PAST_MS
    """When the enricher is to be asked again."""
    later: Later | None = None
    """The answer that is awaited."""
    give_up: TimerTask | None = None


@dataclass(slots=True, eq=False)
class ClientLabels:
    """The labels of one client on one connection."""

    is_own: bool = True
    """It is a client of this cluster."""
    encoded: Labels = None
    """To be set now."""
    missing: Sequence[PluginStats] = ()
    """The plugins that have said nothing yet."""
    due_ms: int = PAST_MS
    """When an enricher is to be asked."""
    changes: int = 0
    """The last of `Changes` that is known here."""
    cluster: str | None = None
    answers: Sequence[Answer] = ()
    """Empty if no labels will change by themselves."""
    awaited: int = 0
    """How many answers are awaited."""
    wait_until_ms: int = PAST_MS
    """How long a push may wait for them."""
    waiting: tuple[Deferred[Labels], ...] = ()
    """Of pushes."""
    wait: TimerTask | None = None

    def taken(self) -> Labels:
        """The labels for a push now."""
        for stats in self.missing:
            stats.unlabeled += 1
        return self.encoded

    def release(self) -> None:
        """Let the pushes go with the labels that are known."""
        if self.wait is not None:
            self.wait.cancel()
            self.wait = None
        waiting, self.waiting = self.waiting, ()
        for each in waiting:
            each.complete_by(self.taken)


@dataclass(slots=True, eq=False)
class Changes:
    """The principals whose labels have changed, numbered."""

    last: int = 0
    of_all: int = 0
    """The last one that concerns all principals."""
    by_principal: OrderedDict[str, int] = field(default_factory=OrderedDict)

    def note(self, principal: str | None) -> None:
        """The labels of a principal have changed; None for those of all."""
        self.last += 1
        if principal is None or len(self.by_principal) >= MAX_CHANGED:
            self.of_all = self.last
            self.by_principal.clear()
        else:
            self.by_principal[principal] = self.last

    def concern(self, principal: str, since: int) -> bool:
        """Whether the labels of a principal have changed after a number."""
        return since < max(self.of_all, self.by_principal.get(principal, 0))
