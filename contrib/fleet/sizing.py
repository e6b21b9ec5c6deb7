"""The arithmetic from what one core does to whole fleets, for ``host/docs/explanation/sizing.md``.

    python -m contrib.fleet.sizing                     # from the repository's root: both tables
    python -m contrib.fleet.sizing --interval-s 300    # another push interval
    python -m contrib.fleet.sizing --write             # put the tables into the page

`MEASURED` has what was measured, and where; everything else is computed from it.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import mean

from contrib.fleet.behavior import KINDS

from odradek.testing.pushes import recorded

PAGE = Path(__file__).parents[2] / "host/docs/explanation/sizing.md"
MARK = re.compile(r"(<!-- sizing: (?P<name>\w+) -->\n)(?:\|.*\n)*")
FLEETS = (1_000, 10_000, 50_000, 500_000)
INTERVAL_S = 60
MIX = {"java": 0.6, "librdkafka": 0.3, "franz-go": 0.1}
BUSY = 0.5
"""The part of a core that a process may use in the mean."""
STORM_S = 30
"""Time in which a host has to take back all of its clients, over TLS."""
SPARE = 1
"""Hosts, and forwarders, that may be gone."""
PARTITIONS_OF_A_FORWARDER = 3
CORES_OF_AN_EXECUTOR = 2
DAY_S = 86_400
FRAME_BYTES = 250
"""Of a push and its answer besides the metrics: headers of Kafka, TCP and IP."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A measured figure."""

    what: str
    value: float
    unit: str
    source: str
    """Script and date."""


PARTS, DATE = "`bench.parts`", "2026-11-23"
MEASURED = {
    "host": Figure(what="host, a push into the log", value=148, unit="µs of CPU", source=PARTS),
    "otlp": Figure(what="host, forwarding it over OTLP", value=119, unit="µs of CPU", source=PARTS),
    "export": Figure(what="host, exporting it to a topic", value=140, unit="µs of CPU", source=PARTS),
    "gateway": Figure(what="gateway, a push into its log", value=145, unit="µs of CPU", source=PARTS),
    "source": Figure(what="host, reading it from a topic", value=122, unit="µs of CPU", source=PARTS),
    "forward": Figure(
        what="`odradek forward`, from a topic to OTLP", value=126, unit="µs of CPU", source=PARTS
    ),
    "log": Figure(what="a push in the log", value=1_230, unit="bytes", source=PARTS),
    "login": Figure(
        what="a connection over TLS (P-256), one request", value=869, unit="µs of CPU", source="`bench.tls`"
    ),
    "connection": Figure(
        what="an idle connection", value=2_350, unit="bytes", source="`bench.idle_memory`"
    ),
    "tls": Figure(
        what="a TLS connection after a push", value=25_000, unit="bytes", source="`bench.tls_memory`"
    ),
    "instance": Figure(what="a client instance", value=960, unit="bytes", source="`bench.idle_memory`"),
    "process": Figure(
        what="a host without clients", value=36_000_000, unit="bytes", source="`bench.idle_memory`"
    ),
    "points": Figure(what="data points of a push", value=102, unit="points", source="`bench.fleet`"),
    "ingest": Figure(what="ingest of a point", value=1.1, unit="µs of CPU", source="`bench.fleet`"),
    "rollup": Figure(what="rollups of a point", value=0.8, unit="µs of CPU", source="`bench.fleet`"),
    "inventory": Figure(what="inventory of a push", value=37, unit="µs of CPU", source="`bench.fleet`"),
    "compaction": Figure(what="compaction of a push", value=250, unit="µs of CPU", source="`bench.fleet`"),
    "detection": Figure(what="detection of a push", value=80, unit="µs of CPU", source="`bench.fleet`"),
    "point": Figure(what="a point in the tables", value=6.6, unit="bytes", source="`bench.fleet`"),
    "row": Figure(what="a push in the tables, no points", value=21, unit="bytes", source="`bench.fleet`"),
    "rollup_day": Figure(
        what="rollups of a client, a day", value=7_600, unit="bytes", source="`bench.fleet`"
    ),
}  # fmt: skip


def of(name: str) -> float:
    return MEASURED[name].value


@cache
def pushed_bytes(name: str) -> tuple[float, float]:
    """Compressed and uncompressed bytes of a push of a kind of client, in the mean of its recordings."""
    pushes = [push for each in KINDS[name].recordings for push in recorded(each)]
    return mean(len(push.sent) for push in pushes), mean(len(push.data) for push in pushes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The needs of a fleet."""

    clients: int
    interval_s: float

    @property
    def pushes_per_s(self) -> float:
        return self.clients / self.interval_s

    @property
    def clients_of_a_host(self) -> int:
        """The smaller of two bounds: the CPU of its pushes, and a storm in which all connect again."""
        by_cpu = BUSY * 1e6 / (of("host") + of("export")) * self.interval_s
        by_storm = STORM_S * 1e6 / of("login")
        return int(min(by_cpu, by_storm))

    @property
    def hosts(self) -> int:
        return math.ceil(self.clients / self.clients_of_a_host) + SPARE

    @property
    def host_cores(self) -> float:
        """In the mean, of all hosts together."""
        return self.pushes_per_s * (of("host") + of("export")) / 1e6

    @property
    def forwarders(self) -> int:
        return math.ceil(self.pushes_per_s * of("forward") / 1e6 / BUSY) + SPARE

    @property
    def partitions(self) -> int:
        return self.forwarders * PARTITIONS_OF_A_FORWARDER

    @property
    def spark_cores(self) -> float:
        """In the mean, with one rule; a run of a job has a constant part besides."""
        of_points = of("points") * (of("ingest") + of("rollup"))
        of_push = of("inventory") + of("compaction") + of("detection")
        return self.pushes_per_s * (of_points + of_push) / 1e6

    @property
    def executors(self) -> int:
        return max(1, math.ceil(self.spark_cores / BUSY / CORES_OF_AN_EXECUTOR))

    @property
    def network_bytes(self) -> float:
        """From the clients, in a day."""
        return self.pushes_per_s * DAY_S * (mixed_bytes()[0] + FRAME_BYTES)

    @property
    def log_bytes(self) -> float:
        return self.pushes_per_s * DAY_S * of("log")

    @property
    def table_bytes(self) -> float:
        of_pushes = of("points") * of("point") + of("row")
        return self.pushes_per_s * DAY_S * of_pushes + self.clients * of("rollup_day")

    def host_memory(self, *, tls: bool) -> float:
        """Of one host while another one is gone."""
        each = of("instance") + (of("tls") if tls else of("connection"))
        return of("process") + self.clients / (self.hosts - SPARE) * each


def mixed_bytes() -> tuple[float, float]:
    """Compressed and uncompressed bytes of a push of the mix."""
    sizes = [(share, pushed_bytes(name)) for name, share in MIX.items()]
    return sum(share * sent for share, (sent, _) in sizes), sum(share * raw for share, (_, raw) in sizes)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return (
        "".join("| " + " | ".join(line) + " |\n" for line in lines)
        .replace("| --- ", "|---")
        .replace("--- |", "---|")
    )


def gigabytes(value: float) -> str:
    return f"{value / 1e9:,.1f} GB"


def sizes(interval_s: float) -> str:
    """The table of the fleets, a column for each."""
    fleets = [Size(clients=clients, interval_s=interval_s) for clients in FLEETS]
    rows = {
        "pushes a second": [f"{each.pushes_per_s:,.0f}" for each in fleets],
        "hosts or gateways": [f"{each.hosts}" for each in fleets],
        "cores that they use in all": [f"{each.host_cores:.2g}" for each in fleets],
        "memory of each, plaintext": [f"{each.host_memory(tls=False) / 1e6:,.0f} MB" for each in fleets],
        "memory of each, TLS": [f"{each.host_memory(tls=True) / 1e6:,.0f} MB" for each in fleets],
        "`odradek forward` processes": [f"{each.forwarders}" for each in fleets],
        "partitions": [f"{each.partitions}" for each in fleets],
        "Spark cores in use": [f"{each.spark_cores:.2g}" for each in fleets],
        f"Spark executors of {CORES_OF_AN_EXECUTOR} cores": [f"{each.executors}" for each in fleets],
        "network, a day": [gigabytes(each.network_bytes) for each in fleets],
        "log, a day and copy": [gigabytes(each.log_bytes) for each in fleets],
        "tables, a day": [gigabytes(each.table_bytes) for each in fleets],
    }
    head = ["clients", *(f"{clients:,}" for clients in FLEETS)]
    return table(head, [[name, *values] for name, values in rows.items()])


def measured() -> str:
    """The table of the measured figures."""
    rows = [
        [each.what, f"{each.value:,g}" if each.value < 1e6 else f"{each.value:,.0f}", each.unit, each.source]
        for each in MEASURED.values()
    ]
    return table(["what", "figure", "unit", "script"], rows)


def payloads() -> str:
    """The table of the recorded pushes."""
    rows = [[name, f"{MIX[name]:.0%}", *(f"{size:,.0f}" for size in pushed_bytes(name))] for name in MIX]
    rows.append(["the mix", "", *(f"{size:,.0f}" for size in mixed_bytes())])
    return table(["client", "share", "bytes of a push, zstd", "uncompressed"], rows)


def page_of(text: str) -> str:
    """The page with its tables written again."""
    tables = {"sizes": sizes(INTERVAL_S), "measured": measured(), "payloads": payloads()}
    return MARK.sub(lambda found: found[1] + tables[found["name"]], text)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--interval-s", type=float, default=INTERVAL_S, help="push interval (default 60)")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    arguments = parser.parse_args()
    if arguments.write:
        PAGE.write_text(page_of(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    print(payloads(), measured(), sizes(arguments.interval_s), sep="\n")


if __name__ == "__main__":
    main()
