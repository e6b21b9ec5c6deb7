"""Rules about what a client does after a push was refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from odradek.testing.conformance.exchange import ClientInstance, Handshake, Pushed, received_ms
from odradek.testing.conformance.finding import Finding, Observation, ok, unseen, worst, wrong
from odradek.testing.conformance.timing_rules import EARLY_MS, untimed
from odradek.wire.error_code import ErrorCode

PATIENCE = 2
"""Intervals after which a client that says nothing has fallen silent."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused push, and what came next."""

    push: Pushed
    next: Handshake | Pushed | None
    after_ms: int
    """Until the next exchange, or how long there was none."""
    interval_ms: int
    untimed: Finding | None

    @property
    def fell_silent(self) -> bool:
        """Nothing came for so long that nothing will."""
        return self.next is None and self.after_ms >= PATIENCE * self.interval_ms

    @property
    def waited(self) -> str:
        """How long, for people."""
        return (
            ""
            if self.untimed is not None
            else f" after {self.after_ms / self.interval_ms:.2f} of the interval"
        )


Reaction = Callable[[Refusal], Finding]


def refusals(instance: ClientInstance, seen: Observation, error: ErrorCode) -> list[Refusal]:
    """The pushes that were answered with an error; one that ends the client asks for no reaction."""
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
    """It asks for its subscription."""
    if isinstance(refusal.next, Handshake):
        return ok(f"asked for its subscription{refusal.waited}")
    if refusal.fell_silent:
        return wrong("fell silent")
    if refusal.next is None or refusal.next.terminating:
        return unseen("nothing followed in time")
    return wrong(f"pushed{refusal.waited} as before")


def changes_codec(refusal: Refusal) -> Finding:
    """It asks for its subscription, or compresses otherwise."""
    if isinstance(refusal.next, Pushed) and refusal.next.codec != refusal.push.codec:
        return ok(f"pushed{refusal.waited}, compressed otherwise")
    return asks_again(refusal)


def waits(refusal: Refusal) -> Finding:
    """It says nothing before the interval is over, and goes on then."""
    if refusal.fell_silent:
        return wrong("fell silent")
    if refusal.next is None or (isinstance(refusal.next, Pushed) and refusal.next.terminating):
        return unseen("nothing followed in time")
    if refusal.untimed is not None:
        return refusal.untimed
    did = "asked for its subscription" if isinstance(refusal.next, Handshake) else "pushed"
    early = refusal.after_ms < refusal.interval_ms - EARLY_MS
    return (wrong if early else ok)(f"{did}{refusal.waited}")


def stops(refusal: Refusal) -> Finding:
    """It pushes no more: the next payload would not be better."""
    if isinstance(refusal.next, Pushed) and not refusal.next.terminating:
        return wrong(f"pushed{refusal.waited}")
    if refusal.fell_silent:
        return ok("pushed no more")
    if isinstance(refusal.next, Handshake):
        return wrong(f"asked for its subscription{refusal.waited}")
    return unseen("nothing followed in time")


def reaction(error: ErrorCode, expected: Reaction) -> Callable[[ClientInstance, Observation], Finding]:
    """The rule about one error."""

    def rule(instance: ClientInstance, seen: Observation) -> Finding:
        found = refusals(instance, seen, error)
        if not found:
            return unseen("no push was answered so")
        return worst(map(expected, found))

    return rule
