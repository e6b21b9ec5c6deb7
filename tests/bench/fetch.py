"""CPU time of one fetched record: odradek compared with librdkafka's mock broker and Apache Kafka, in one
run.

The client is librdkafka, assigned to one partition from offset 0, at full speed.

Usage, from the folder above: ``python -m bench.fetch [--row mega] [--rounds 9] [--server NAME] [--json]``
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

SIZE = 1000
RECORDS = 100_000
KEPT_BY_THE_MOCK = 4_000
"""The mock broker keeps only the newest 5 MB of a partition; its records are read repeatedly instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    title: str
    batch_bytes: int
    fetch_bytes: int
    goals: tuple[Goal, ...] = (Goal(peer=KAFKA, most=1),)


ROWS = {
    "mega": Row(
        title="fetch, 1000 B, 1 MB at a time, batches of 1 MB", batch_bytes=1_000_000, fetch_bytes=1 << 20
    ),
    "piece": Row(
        title="fetch, 1000 B, 64 kB at a time, batches of 60 kB", batch_bytes=60_000, fetch_bytes=1 << 16
    ),
    "many": Row(
        title="fetch, 1000 B, 1 MB at a time, batches of 16 kB", batch_bytes=16_000, fetch_bytes=1 << 20
    ),
}


def fill(server: Server, topic: str, records: int, batch_bytes: int, core: int | None) -> None:
    """Write the log that the client will read."""
    client = {"linger.ms": 100, "batch.size": batch_bytes}
    settings = {"topic": topic, "records": records, "size": SIZE, "client": client, "warm": False}
    measure(server, "produce", settings, core)


def settings_of(name: str, row: Row, server: str) -> dict[str, Any]:
    records = KEPT_BY_THE_MOCK if server == MOCK else RECORDS
    limits = {"fetch.message.max.bytes": row.fetch_bytes, "fetch.max.bytes": max(row.fetch_bytes, 1 << 20)}
    return {
        "topic": f"fetch-{name}",
        "records": records,
        "passes": RECORDS // records,
        "size": SIZE,
        "client": limits,
    }


def run(name: str, servers: dict[str, Server], bench: Bench) -> Windows:
    row = ROWS[name]
    settings = {server: settings_of(name, row, server) for server in servers}
    for of_server, server in servers.items():
        wanted = settings[of_server]
        fill(server, wanted["topic"], wanted["records"], row.batch_bytes, bench.load_core)

    def window(of_server: str, server: Server) -> RecordWindow:
        return measure(server, "fetch", settings[of_server], bench.load_core)

    return bench.interleaved(servers, window)


def comparisons(rounds: int) -> list[Comparison]:
    """The lines of the table."""
    return Bench.main("fetch", __doc__, ROWS, run, ["--rounds", str(rounds)])


if __name__ == "__main__":
    Bench.main("fetch", __doc__, ROWS, run, sys.argv[1:])
