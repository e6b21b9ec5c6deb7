"""CPU time of one produced record: odradek compared with librdkafka's mock broker and Apache Kafka, in one
run.

The client is librdkafka, idempotent, with acks=all, on one partition, at full speed.

Usage, from the folder above: ``python -m bench.produce [--row large] [--rounds 9] [--server NAME] [--json]``
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from bench.comparison import Comparison, Goal
from bench.harness import Server
from bench.record_servers import KAFKA, Bench, Windows
from bench.record_window import RecordWindow, measure
from bench.rows import MOCK


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    size: int
    records: int
    client: dict[str, Any]
    varied: bool = False
    """With keys, and values whose lengths are log-normal around ``size``."""
    goals: tuple[Goal, ...] = ()


ROWS = {
    "large": Row(
        title="produce, 1000 B, linger 5 ms",
        size=1000,
        records=50_000,
        client={"linger.ms": 5},
        goals=(Goal(peer=KAFKA, most=1), Goal(peer=MOCK, most=2.5)),
    ),
    "small": Row(
        title="produce, 100 B, linger 5 ms",
        size=100,
        records=300_000,
        client={"linger.ms": 5},
        goals=(Goal(peer=KAFKA, most=1),),
    ),
    "single": Row(
        title="produce, 1000 B, one record per request",
        size=1000,
        records=10_000,
        client={"linger.ms": 0, "batch.num.messages": 1},
        goals=(Goal(peer=KAFKA, most=1), Goal(peer=MOCK, most=2.6)),
    ),
    "varied": Row(
        title="produce, keys, 20 to 2000 B, linger 5 ms",
        size=150,
        records=100_000,
        client={"linger.ms": 5},
        varied=True,
        goals=(Goal(peer=KAFKA, most=1),),
    ),
}


def run(name: str, servers: dict[str, Server], bench: Bench) -> Windows:
    row = ROWS[name]
    settings = {
        "topic": f"produce-{name}",
        "records": row.records,
        "size": row.size,
        "varied": row.varied,
        "client": row.client,
    }

    def window(_name: str, server: Server) -> RecordWindow:
        return measure(server, "produce", settings, bench.load_core)

    return bench.interleaved(servers, window)


def comparisons(rounds: int) -> list[Comparison]:
    """The lines of the table."""
    return Bench.main("produce", __doc__, ROWS, run, ["--rounds", str(rounds)])


if __name__ == "__main__":
    Bench.main("produce", __doc__, ROWS, run, sys.argv[1:])
