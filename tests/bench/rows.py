"""The rows of the push bench: the payload, the host's work on it, and the goals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

C_EPOLL = "C epoll"
MOCK = "librdkafka mock"
UVLOOP = "odradek, uvloop"
ASYNCIO = "odradek, asyncio"
OF_C_EPOLL = "part of C epoll's requests per CPU second"
SERVERS = (C_EPOLL, UVLOOP, ASYNCIO, MOCK)

Medians = dict[str, float]
"""CPU microseconds per request of each server that ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A goal with 64 connections and one push in flight on each; NaN if a server is missing."""

    text: str
    least: float
    figure: Callable[[Medians], float]

    def verdict(self, medians: Medians) -> str:
        figure = self.figure(medians)
        if math.isnan(figure):
            return f"not measured: {self.text}"
        verdict = "reached" if figure >= self.least else "MISSED"
        return f"{verdict}: {self.text}: {figure:,.2f}, goal {self.least:,.2f}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    payload: str
    receiver: str
    """``noop`` counts pushes; ``joining`` merges every 40 of them, as a forwarder would."""
    enrich: bool
    """Whether odradek-enrich labels the pushes."""
    goals: tuple[Goal, ...]


def part_of(one: str, other: str) -> Callable[[Medians], float]:
    """The requests per CPU second of one server, as a multiple of ``other``'s."""
    return lambda us: us.get(other, float("nan")) / us.get(one, float("nan"))


def per_core_second(server: str) -> Callable[[Medians], float]:
    return lambda us: 1e6 / us.get(server, float("nan"))


ROWS = {
    "small": Row(
        title="small push, 500 B, no labels, a receiver that does nothing",
        payload="small",
        receiver="noop",
        enrich=False,
        goals=(
            Goal(text=f"uvloop: {OF_C_EPOLL}", least=0.60, figure=part_of(UVLOOP, C_EPOLL)),
            Goal(text=f"asyncio: {OF_C_EPOLL}", least=0.52, figure=part_of(ASYNCIO, C_EPOLL)),
        ),
    ),
    "java": Row(
        title="Java-like push, 150 metrics, 21 kB in zstd, labeled, joined",
        payload="java25k",
        receiver="joining",
        enrich=True,
        goals=(
            Goal(text="uvloop: pushes per core-second", least=12_000, figure=per_core_second(UVLOOP)),
            Goal(text="uvloop: times the mock broker", least=2.0, figure=part_of(UVLOOP, MOCK)),
        ),
    ),
    "librd": Row(
        title="librdkafka-like push, 40 metrics, 5.4 kB in zstd, labeled, joined",
        payload="librd6k",
        receiver="joining",
        enrich=True,
        goals=(
            Goal(text="uvloop: pushes per core-second", least=29_000, figure=per_core_second(UVLOOP)),
            Goal(text="uvloop: times the mock broker", least=1.4, figure=part_of(UVLOOP, MOCK)),
        ),
    ),
}
