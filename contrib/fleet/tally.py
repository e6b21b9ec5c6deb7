"""The counts and times of a run, and their summary."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from odradek.wire.error_code import ErrorCode

LATE_S = 0.1
"""A request that the generator sends this much after its time is late."""
SHARES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(slots=True)
class Tally:
    """All that happened since the counts were begun."""

    pushes: int = 0
    accepted: int = 0
    bytes: int = 0
    """Of the accepted pushes, compressed."""
    refused: Counter[int] = field(default_factory=Counter)
    """Pushes by error code."""
    terminated: int = 0
    """Accepted last pushes."""
    asked: int = 0
    refused_asks: Counter[int] = field(default_factory=Counter)
    unanswered: int = 0
    """Pushes whose connection was lost: whether they were accepted is unknown."""
    waited: int = 0
    """Pushes that were due while their connection was down or throttled."""
    connected: int = 0
    lost: int = 0
    failed: int = 0
    """Attempts to connect without success."""
    stopped: int = 0
    """Clients that stopped telemetry because of a fatal error."""
    left: int = 0
    joined: int = 0
    latency_s: array[float] = field(default_factory=lambda: array("f"))
    late_s: array[float] = field(default_factory=lambda: array("f"))
    """How late each request was sent, by the fault of the generator."""

    @property
    def late(self) -> int:
        return sum(1 for each in self.late_s if each > LATE_S)

    def sent(self, late_s: float) -> None:
        self.late_s.append(max(0.0, late_s))

    def answered(self, error: int, size: int, terminating: bool, latency_s: float) -> None:
        """Count the answer to a push of ``size`` bytes."""
        self.latency_s.append(latency_s)
        if error:
            self.refused[error] += 1
            return
        self.accepted += 1
        self.bytes += size
        self.terminated += terminating

    def summary(self, seconds: float, cpu_s: float) -> dict[str, Any]:
        """The counts and times as JSON has them.

        Args:
            seconds: The length of the run.
            cpu_s: The processor time of the generator.
        """
        return {
            "seconds": round(seconds, 2),
            "pushes_per_s": round(self.accepted / seconds, 1) if seconds else 0.0,
            "pushes": self.pushes,
            "accepted": self.accepted,
            "bytes": self.bytes,
            "terminated": self.terminated,
            "refused": names(self.refused),
            "unanswered": self.unanswered,
            "waited_for_connection": self.waited,
            "subscriptions_asked": self.asked,
            "subscriptions_refused": names(self.refused_asks),
            "connections": {"opened": self.connected, "lost": self.lost, "failed": self.failed},
            "clients": {"joined": self.joined, "left": self.left, "stopped": self.stopped},
            "latency_ms": quantiles(self.latency_s),
            "late": {"pushes": self.late, "of_ms": round(LATE_S * 1000), **quantiles(self.late_s)},
            "generator_core": round(cpu_s / seconds, 3) if seconds else 0.0,
        }


def names(codes: Counter[int]) -> dict[str, int]:
    """Counts by the name of the error."""
    known = set(ErrorCode)
    return {ErrorCode(code).name if code in known else str(code): count for code, count in codes.items()}


def quantiles(seconds: Sequence[float]) -> dict[str, float]:
    """Milliseconds at each of `SHARES`; empty without values."""
    found = sorted(seconds)
    last = len(found) - 1
    return {
        name: round(found[min(last, int(share * len(found)))] * 1000, 2)
        for name, share in SHARES.items()
        if found
    }


def text(summary: dict[str, Any]) -> str:
    """A summary for people."""
    refused = ", ".join(f"{count} {name}" for name, count in summary["refused"].items()) or "none"
    latency = "  ".join(f"{name} {value:.1f}" for name, value in summary["latency_ms"].items())
    late = summary["late"]
    links, clients = summary["connections"], summary["clients"]
    opening = summary["opening"]
    lines = [
        f"{opening['connections']} connections were opened in {opening['seconds']:.1f} s",
        f"{summary['pushes_per_s']:.0f} pushes/s: {summary['accepted']} accepted in"
        f" {summary['seconds']:.1f} s, {summary['bytes'] / 1e6:.1f} MB,"
        f" {summary['terminated']} the last of their client",
        f"refused: {refused}; without an answer: {summary['unanswered']}",
        f"latency, ms: {latency or 'no pushes'}",
        f"connections: {links['opened']} opened, {links['lost']} lost, {links['failed']} attempts failed;"
        f" {summary['waited_for_connection']} pushes waited for one",
        f"clients: {clients['joined']} joined, {clients['left']} left,"
        f" {clients['stopped']} stopped telemetry",
        f"the generator used {summary['generator_core']:.2f} of a core; it sent {late['pushes']} requests"
        f" more than {late['of_ms']} ms late, at most {late.get('max', 0.0):.0f} ms",
    ]
    if summary["storm_seconds"] is not None:
        lines.append(f"all connections were open again {summary['storm_seconds']:.1f} s after the storm")
    return "\n".join(lines)
