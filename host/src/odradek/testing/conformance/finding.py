"""What was found out about one rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from odradek.testing.conformance.exchange import ClientInstance, Exchange, received_ms


class Verdict(StrEnum):
    """The worst comes first."""

    WRONG = "wrong"
    OK = "ok"
    UNSEEN = "unseen"
    """It did not happen, or cannot be told from what is at hand."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with its reason."""

    verdict: Verdict
    seen: str


def wrong(seen: str) -> Finding:
    return Finding(Verdict.WRONG, seen)


def ok(seen: str) -> Finding:
    return Finding(Verdict.OK, seen)


def unseen(seen: str) -> Finding:
    return Finding(Verdict.UNSEEN, seen)


def worst(findings: Iterable[Finding]) -> Finding:
    """The verdict of several client instances; of equal ones the first."""
    return min(findings, key=lambda finding: list(Verdict).index(finding.verdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is known about the client instances of a client."""

    exchanges: Sequence[Exchange]
    """In their order."""
    complete: bool = True
    """With handshakes and refused pushes; False for the accepted pushes of the telemetry topic."""
    timed: bool = True
    """False where the host's clock was driven by hand."""
    until_ms: int | None = None
    """How long somebody looked; None for up to the last exchange."""

    def silence_ms(self, instance: ClientInstance) -> int:
        """How long nothing has come from an instance."""
        last_ms = received_ms(instance.exchanges[-1])
        return max(0, (self.until_ms or last_ms) - last_ms)
