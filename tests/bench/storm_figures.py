"""The cost of storms to a server and its clients, for print-outs and for the table of all benches."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.comparison import Comparison, Goal
from bench.harness import spread

MIB: Final = 1 << 20
ENDS: Final = ("p999", "max")
BUSY_MS: Final = {"p99.9": 5.0, "longest": 50.0}
"""Goals of the loop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Storm:
    """One storm."""

    clients: dict[str, Any]
    """Their report, see ``native/storm/main.go``."""
    cpu_s: float
    """Of the server."""
    loop: dict[str, float]
    """See `LoopProbe.report`; empty for a peer."""
    lost: int
    """Times that a client found the queue of the listener full; its kernel knocks again after a second."""
    after_bytes: int
    """Private memory at the end, with all connections open."""

    @property
    def failed(self) -> str:
        """How many clients had to try again and why, and how many never pushed; empty if all did at once."""
        found = dict(self.clients["reasons"])
        text = ", ".join(f"{count} {reason}" for reason, count in sorted(found.items()))
        again = f"{self.clients['again']} tried again: {text}" if found else ""
        missing = f"{self.clients['unfinished']} NEVER PUSHED" if self.clients["unfinished"] else ""
        queue = f"{self.lost} times a full listen queue" if self.lost else ""
        return "; ".join(each for each in (again, missing, queue) if each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The cost of the storms of one kind to a server."""

    server: str
    kind: str
    count: int
    """Clients."""
    first: Storm
    """The first arrival of the clients, after which the code of a JVM is compiled."""
    storms: Sequence[Storm]
    before_bytes: int
    """Private memory before the first client."""
    peak_bytes: int
    left_bytes: int
    """After all clients have left."""
    leaving: dict[str, float]
    """The loop while all clients leave at once; empty for a peer."""

    def __str__(self) -> str:
        cpu_s = [each.cpu_s for each in self.storms]
        held = ", ".join(f"{each.after_bytes / MIB:.0f}" for _, each in self.named())
        facts = {
            f"s until all {self.count:,} have pushed": self.spread("seconds"),
            "s of one client, p50": self.spread("p50_s"),
            "s of one client, p99": self.spread("p99_s"),
            "s of CPU, server": spread(cpu_s, 2),
            "ms of CPU of the server per client": f"{statistics.median(cpu_s) / self.count * 1000:.3f}",
            "s of CPU, clients": self.spread("cpu_s"),
            "MiB before, peak, after all have left": f"{self.before_bytes / MIB:.0f}, "
            f"{self.peak_bytes / MIB:.0f}, {self.left_bytes / MIB:.0f}",
            "MiB at the end of each storm": held,
            "first arrival, s, s of CPU": f"{self.first.clients['seconds']:.2f}, {self.first.cpu_s:.2f}",
        }
        if self.leaving:
            for title, key in (("loop busy, ms of CPU", "cpu"), ("loop late, ms", "wall")):
                p999, most = self.worst(key)
                facts[f"{title}: p99.9, longest"] = f"{p999:.1f}, {most:.1f}"
            facts["the same, longest, when all leave"] = f"{self.leaving['cpu_max_ms']:.1f}"
        facts |= {title: each.failed for title, each in self.named() if each.failed}
        return "\n".join(
            [f"{self.kind}: {self.server}", *(f"  {title:44}{fact}" for title, fact in facts.items())]
        )

    def worst(self, key: str) -> Iterator[float]:
        """The p99.9 and the maximum of the storm in which each was worst."""
        return (max(each.loop[f"{key}_{end}_ms"] for each in self.storms) for end in ENDS)

    @property
    def costs(self) -> dict[str, float]:
        """The medians of the storms, by figure and unit; NaN if a client never pushed."""
        seconds = statistics.median(each.clients["seconds"] for each in self.storms)
        cpu_s = statistics.median(each.cpu_s for each in self.storms)
        found = {
            "until all have pushed, s": seconds,
            "CPU per client, ms": cpu_s / self.count * 1000,
            "peak memory, MiB": self.peak_bytes / MIB,
        }
        return found if self.is_complete else dict.fromkeys(found, math.nan)

    def spread(self, key: str) -> str:
        """Of a figure of the clients."""
        return spread([each.clients[key] for each in self.storms], 2)

    def named(self) -> Iterator[tuple[str, Storm]]:
        """The arrival and the storms."""
        yield "first arrival", self.first
        for number, each in enumerate(self.storms, 1):
            yield f"storm {number}", each

    @property
    def is_complete(self) -> bool:
        """Whether every client pushed in every storm."""
        return not any(each.clients["unfinished"] for _, each in self.named())


def lines(ours: Figures, theirs: Sequence[Figures]) -> Iterator[Comparison]:
    """The lines of one kind."""
    title = f"storm of {ours.count:,} clients, {ours.kind}"
    for fact, cost in ours.costs.items():
        row, _, unit = f"{title}, {fact}".rpartition(", ")
        if not theirs:
            yield Comparison(row=row, unit=unit, ours=cost)
        for each in theirs:
            yield Comparison(
                row=row, unit=unit, ours=cost, peer=each.server, theirs=each.costs[fact], goal=Goal(most=1.0)
            )
    for (end, most), busy in zip(BUSY_MS.items(), ours.worst("cpu"), strict=True):
        yield Comparison(row=f"{title}, loop busy, {end}", unit="ms", ours=busy, goal=Goal(most=most))
