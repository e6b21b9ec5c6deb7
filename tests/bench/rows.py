"""The rows of the push bench: the payload, the host's work on it, and the goals."""

from __future__ import annotations

from dataclasses import dataclass

from bench.comparison import Goal

C_EPOLL = "C epoll"
MOCK = "librdkafka mock"
UVLOOP = "odradek, uvloop"
ASYNCIO = "odradek, asyncio"
OURS = (UVLOOP, ASYNCIO)
SERVERS = (C_EPOLL, UVLOOP, ASYNCIO, MOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    payload: str
    receiver: str
    """``noop`` counts pushes; ``joining`` merges every 40 of them, as a forwarder would."""
    enrich: bool
    """Whether odradek-enrich labels the pushes."""
    goals: tuple[Goal, ...]
    """With 64 connections and one push in flight on each."""


ROWS = {
    "small": Row(
        title="small push, 500 B, no labels, a receiver that does nothing",
        payload="small",
        receiver="noop",
        enrich=False,
        goals=(Goal(peer=C_EPOLL, most=2.2), Goal(who=ASYNCIO, peer=C_EPOLL, most=2.5)),
    ),
    "java": Row(
        title="Java-like push, 150 metrics, 21 kB in zstd, labeled, joined",
        payload="java25k",
        receiver="joining",
        enrich=True,
        goals=(Goal(most=83), Goal(peer=MOCK, most=0.5)),
    ),
    "librd": Row(
        title="librdkafka-like push, 40 metrics, 5.4 kB in zstd, labeled, joined",
        payload="librd6k",
        receiver="joining",
        enrich=True,
        goals=(Goal(most=34), Goal(peer=MOCK, most=0.71)),
    ),
}
