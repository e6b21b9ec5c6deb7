"""The result of checking one rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from odradek.testing.conformance.exchange import ClientInstance, Exchange, received_ms


class Verdict(StrEnum):
    """The verdict on a rule. The order is from worst to best."""

    WRONG = "wrong"
    OK = "ok"
    UNSEEN = "unseen"
    """The situation did not occur, or the exchanges at hand do not show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict with its reason."""

    verdict: Verdict
    seen: str


wrong, ok, unseen = (partial(Finding, verdict) for verdict in Verdict)


def worst(findings: Iterable[Finding]) -> Finding:
    """The worst finding of several client instances; the first of equal ones."""
    return min(findings, key=lambda finding: list(Verdict).index(finding.verdict))


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The observed exchanges of a client, with all its client instances."""

    exchanges: Sequence[Exchange]
    """The exchanges in their order."""
    complete: bool = True
    """Whether handshakes and refused pushes are included; False for the pushes in the telemetry topic."""
    timed: bool = True
    """Whether the host's clock was real; False if a test controlled it."""
    until_ms: int | None = None
    """End of the observation, epoch milliseconds; None for the last exchange."""

    def silence_ms(self, instance: ClientInstance) -> int:
        """The time from the last exchange of an instance to the end of the observation."""
        last_ms = received_ms(instance.exchanges[-1])
        return max(0, (self.until_ms or last_ms) - last_ms)
