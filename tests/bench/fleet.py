"""The tables of a large fleet, by segments of simulated time: what a day costs, and what grows.

    python -m bench.fleet FOLDER --clients 500 --minutes 60            # begins, or continues where it ended
    python -m bench.fleet FOLDER --clients 500 --minutes 60 --every 30 --end   # also queries and verifies

Every client pushes once a minute, as the recorded Java and librdkafka clients do, with new values each time.
A batch of a minute is decoded, written and committed as a task of ingest does it, and the jobs run in a Spark
session as ``odradek spark run`` runs them, every ``--every`` simulated minutes. The topic and its consumer
are left out. CPU is that of this process, the JVM and the workers; making the payloads is not counted. A
line of JSON has the CPU by activity, and the rows, bytes, files and commits of each table. Linux only: CPU
and memory come from ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from contrib.fleet.payloads import VARIANTS, dated, template

from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
from odradek.testing import request_context
from odradek.topic.telemetry_topic import encode_headers, record_key
from odradek_spark.cli import reports
from odradek_spark.cli.session import opened
from odradek_spark.jobs.expire import run_expire
from odradek_spark.jobs.rules import Op, Rule
from odradek_spark.jobs.verify import run_verify
from odradek_spark.sink.commit import Batch, commit
from odradek_spark.sink.written import Written, write_records
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Counts, Decoder
from odradek_tables.decoder.topic_record import TopicRecord
from odradek_tables.levels import Levels
from odradek_tables.log import live
from odradek_tables.query import questions
from odradek_tables.query.questions import Who, Window
from odradek_tables.query.reader import Reader
from odradek_tables.retention import KEPT_DAYS
from odradek_tables.schemas import BY_NAME, PUSHES

from .harness import head, processes, rss_bytes, tree_cpu_s

TOPIC, PARTITIONS, MINUTE_MS = "__client_telemetry", 1, 60_000
START_MS = 1_790_035_200_000
"""2026-09-22T00:00:00Z."""
KINDS = ("java-producer",) * 4 + ("java-consumer",) * 4 + ("librdkafka-producer", "librdkafka-consumer")
CHUNK = 500
LATENCY = "org.apache.kafka.producer.node.request.latency.max"
RULE = Rule(id="slow", metric=LATENCY, op=Op.ABOVE, threshold=995.0)


@dataclass(slots=True)
class Fleet:
    """Clients, of which some are replaced by new ones every hour."""

    clients: int
    turnover: float
    templates: dict[str, list[bytes]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        source = random.Random(1)
        self.templates = {kind: [template(kind, source) for _ in range(VARIANTS)] for kind in KINDS}

    def records(self, minute: int) -> list[TopicRecord]:
        """The pushes of all clients in a minute."""
        source, hour = random.Random(minute), minute // 60
        return [self.record(number, minute, hour, source) for number in range(self.clients)]

    def record(self, number: int, minute: int, hour: int, source: random.Random) -> TopicRecord:
        at_ms = START_MS + minute * MINUTE_MS + number * MINUTE_MS // self.clients
        kind = KINDS[number % len(KINDS)]
        replaced = number % round(1 / self.turnover) == 0 if self.turnover else False
        instance = uuid.UUID(
            int=random.Random((number << 20) + (hour if replaced else 0)).getrandbits(128)
        ).bytes
        payload = dated(source.choice(self.templates[kind]), at_ms * 1_000_000, MINUTE_MS)
        context = request_context(
            connection_id=f"10.0.0.1:9092-10.1.{number >> 8 & 255}.{number & 255}:50000-1",
            client_address=f"10.1.{number >> 8 & 255}.{number & 255}",
            client_software_name="apache-kafka-java" if kind.startswith("java") else "librdkafka",
            client_software_version=f"4.{number // 10 % 4}.0",
            client_id=f"app-{number:05}",
            received_ms=at_ms,
        )
        telemetry = ClientTelemetryPayload(instance, False, payload)
        headers = encode_headers(TelemetryRecord(context, MINUTE_MS, telemetry, subscription_id=7, codec=4))
        return TopicRecord(0, minute * self.clients + number, at_ms, record_key(instance), payload, headers)


@dataclass(slots=True)
class Costs:
    """CPU seconds by activity."""

    cpu_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    peak_bytes: int = 0

    @contextmanager
    def of(self, activity: str) -> Iterator[None]:
        """Add the CPU of a block to an activity."""
        before = cpu_s()
        yield
        self.cpu_s[activity] += cpu_s() - before
        self.peak_bytes = max(self.peak_bytes, sum(map(memory, family())))


def family() -> list[int]:
    """This process and its descendants."""
    while True:
        with suppress(OSError):  # a process may end meanwhile
            return list(processes(os.getpid()))


def memory(pid: int) -> int:
    with suppress(OSError):  # it may end meanwhile
        return rss_bytes(pid)
    return 0


def cpu_s() -> float:
    """CPU seconds of this process, of its descendants and of those that have ended."""
    return sum(tree_cpu_s(os.getpid()).values())


def ingest(dataset: Dataset, decoder: Decoder, records: list[TopicRecord], batch: int) -> Counts:
    """Ingest a batch as a task and the driver do it."""
    written = Written("bench", TOPIC)
    chunks = [records[first : first + CHUNK] for first in range(0, len(records), CHUNK)]
    write_records(chunks, decoder, dataset.root, written)
    commit(dataset, Batch.of([written], batch))
    return written.counts


def tables(dataset: Dataset) -> dict[str, dict[str, int]]:
    """Rows, bytes, files and commits of each table."""
    found = {}
    for name, table in BY_NAME.items():
        current = dataset.open(table)
        if current is not None:
            files = live(current)
            found[name] = {
                "rows": sum(each.rows for each in files),
                "bytes": sum(each.file_bytes for each in files),
                "files": len(files),
                "commits": current.version(),
            }
    return found


def asked(root: str, until: datetime) -> dict[str, Callable[[], object]]:
    """Questions about the last hour."""
    window = Window(since=until - timedelta(hours=1), until=until)

    def ask(question: Callable[[Reader], object]) -> Callable[[], object]:
        return lambda: question(Reader(root, window.since, window.until))

    return {
        "query clients": ask(lambda reader: questions.clients(reader, window)),
        "query client": ask(lambda reader: questions.client(reader, Who(client_id="app-00001"), window)),
        "query top": ask(lambda reader: questions.top(reader, LATENCY, window)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--clients", type=int, default=500)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--every", type=int, default=5, help="simulated minutes between two runs of the jobs")
    parser.add_argument("--turnover", type=float, default=0.05, help="part of the clients replaced each hour")
    parser.add_argument("--end", action="store_true", help="query and verify at the end")
    arguments = parser.parse_args()
    print(head("fleet"), file=sys.stderr)
    dataset = Dataset(str(arguments.folder.absolute()))
    dataset.create()
    done = dataset.source_offsets(PUSHES, TOPIC, [0]).get(0, 0)
    begin = done // arguments.clients
    fleet, decoder, costs = Fleet(arguments.clients, arguments.turnover), Decoder(), Costs()
    spark = opened("local[2]", {})
    points, started_s = 0, time.monotonic()
    for minute in range(begin, begin + arguments.minutes):
        records = fleet.records(minute)
        with costs.of("ingest"):
            points += ingest(dataset, decoder, records, minute).points
        if (minute + 1) % arguments.every == 0:
            with costs.of("rollup"):
                reports.rolled_up(spark, dataset.root, Levels())
            with costs.of("inventory"):
                reports.inventoried(spark, dataset.root)
            with costs.of("compact"):
                reports.compacted(spark, dataset.root)
            with costs.of("detect"):
                reports.detected(spark, dataset.root, [RULE])
        if (minute + 1) % 60 == 0:
            now = datetime.fromtimestamp((START_MS + minute * MINUTE_MS) / 1000, UTC)
            with costs.of("expire"):
                run_expire(dataset.root, now, KEPT_DAYS)
    end = datetime.fromtimestamp((START_MS + (begin + arguments.minutes) * MINUTE_MS) / 1000, UTC)
    if arguments.end:
        for name, question in asked(dataset.root, end).items():
            with costs.of(name):
                question()
        with costs.of("verify"):
            report = run_verify(spark, dataset.root, end - timedelta(hours=1), end)
        assert not report.faults, report.text()
    said = {
        "clients": arguments.clients,
        "from minute": begin,
        "minutes": arguments.minutes,
        "points": points,
        "wall s": round(time.monotonic() - started_s, 1),
        "peak MiB": costs.peak_bytes >> 20,
        "cpu s": {name: round(cpu_s, 2) for name, cpu_s in costs.cpu_s.items()},
        "tables": tables(dataset),
    }
    print(json.dumps(said), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
