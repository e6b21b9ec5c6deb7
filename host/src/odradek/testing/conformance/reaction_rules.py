"""Rules about a client's reaction to a refused push."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.testing.conformance.exchange import ClientInstance, Handshake, Pushed, received_ms
from odradek.testing.conformance.finding import Finding, Observation, ok, unseen, worst, wrong
from odradek.testing.conformance.timing_rules import EARLY_MS, untimed
from odradek.wire.error_code import ErrorCode

PATIENCE = 2
"""Number of intervals without a request after which a client counts as silent."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused push, and the exchange that followed."""

    push: Pushed
    next: Handshake | Pushed | None
    after_ms: int
    """Time to the next exchange, or to the end of the observation if there is none."""
    interval_ms: int
    untimed: Finding | None

    @property
    def fell_silent(self) -> bool:
        """Whether the observation continued long enough without a further exchange."""
        return self.next is None and self.after_ms >= PATIENCE * self.interval_ms

    @property
    def waited(self) -> str:
        """The time to the next exchange as text; empty if it says nothing."""
        return (
            ""
            if self.untimed is not None
            else f" after {self.after_ms / self.interval_ms:.2f} of the interval"
        )


Reaction = Callable[[Refusal], Finding]


def refusals(instance: ClientInstance, seen: Observation, error: ErrorCode) -> list[Refusal]:
    """The pushes that were refused with an error, except terminating ones, which need no reaction."""
    found = []
    for index, push in enumerate(instance.exchanges):
        if not isinstance(push, Pushed) or push.error is not error or push.terminating:
            continue
        following = instance.exchanges[index + 1 : index + 2]
        interval_ms = instance.interval_ms(index) or 0
        after_ms = received_ms(following[0]) - received_ms(push) if following else seen.silence_ms(instance)
        reason = untimed(seen, interval_ms)
        found.append(Refusal(push, following[0] if following else None, after_ms, interval_ms, reason))
    return found


def asks_again(refusal: Refusal) -> Finding:
    """The client requests its subscription."""
    if isinstance(refusal.next, Handshake):
        return ok(f"requested its subscription{refusal.waited}")
    if refusal.fell_silent:
        return wrong("sent nothing more")
    if refusal.next is None or refusal.next.terminating:
        return unseen("nothing followed in time")
    return wrong(f"pushed{refusal.waited} as before")


def changes_codec(refusal: Refusal) -> Finding:
    """The client requests its subscription, or uses another codec."""
    if isinstance(refusal.next, Pushed) and refusal.next.codec != refusal.push.codec:
        return ok(f"pushed{refusal.waited} with another codec")
    return asks_again(refusal)


def waits(refusal: Refusal) -> Finding:
    """The client sends nothing until the interval is over, then continues."""
    if refusal.fell_silent:
        return wrong("sent nothing more")
    if refusal.next is None or (isinstance(refusal.next, Pushed) and refusal.next.terminating):
        return unseen("nothing followed in time")
    if refusal.untimed is not None:
        return refusal.untimed
    did = "requested its subscription" if isinstance(refusal.next, Handshake) else "pushed"
    early = refusal.after_ms < refusal.interval_ms - EARLY_MS
    return (wrong if early else ok)(f"{did}{refusal.waited}")


def stops(refusal: Refusal) -> Finding:
    """The client stops pushing, because its next payload would be invalid too."""
    if isinstance(refusal.next, Pushed) and not refusal.next.terminating:
        return wrong(f"pushed{refusal.waited}")
    if refusal.fell_silent:
        return ok("stopped pushing")
    if isinstance(refusal.next, Handshake):
        return wrong(f"requested its subscription{refusal.waited}")
    return unseen("nothing followed in time")


def reaction(error: ErrorCode, expected: Reaction) -> Callable[[ClientInstance, Observation], Finding]:
    """Create the rule for one error."""

    def rule(instance: ClientInstance, seen: Observation) -> Finding:
        found = refusals(instance, seen, error)
        if not found:
            return unseen("no push was refused with this error")
        return worst(map(expected, found))

    return rule
