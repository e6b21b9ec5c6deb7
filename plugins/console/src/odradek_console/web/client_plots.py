"""The plots of a client: Kafka's metrics of its role by concern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.findings.client_metrics import PREFIX
from odradek.findings.troubles import FINDINGS
from odradek_console.engine.findings import Finding
from odradek_console.engine.libraries import reports
from odradek_console.engine.series_history import LEVELS
from odradek_console.reading.told import Told
from odradek_console.rows import ClientDetail, SeriesRow
from odradek_console.text import label_text
from odradek_console.web.plots import MOST_LINES, Level, Line, Plot, plot, with_gaps

OBSERVED: Final = "io.odradek.observed.client."
AVERAGE, LARGEST = "average", "largest"
TROUBLES: Final = {each.id: each for each in FINDINGS}
EVIDENCE_MS: Final = 60_000
"""The least time that a plot of evidence spans."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A plot of some metrics of a role."""

    title: str
    unit: str
    metrics: tuple[tuple[str, str], ...]
    """The name of a line, and its metric without the prefix of the role. Of alternatives with ``|`` between
    them the first that a client has is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A panel on the page."""

    title: str
    plot: Plot | None
    """None if there are no values."""
    missing: tuple[str, ...]
    """The reasons why lines are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The panels of one concern."""

    title: str
    panels: tuple[Shown, ...]


def both(metric: str) -> tuple[tuple[str, str], ...]:
    """The average and the maximum."""
    return (AVERAGE, f"{metric}.avg"), (LARGEST, f"{metric}.max")


def requests(title: str) -> tuple[Panel, ...]:
    """The latency of requests to each broker."""
    return (
        Panel(f"{title} by broker, average", "ms", (("", "node.request.latency.avg"),)),
        Panel(f"{title} by broker, largest", "ms", (("", "node.request.latency.max"),)),
    )


CONNECTIONS: Final = (
    Panel("New connections", "connections/s", (("", "connection.creation.total|connection.creation.rate"),)),
    Panel("Open connections", "connections", (("", "connection.count"),)),
)
Groups = tuple[tuple[str, tuple[Panel, ...]], ...]
ROLES: Final[dict[str, Groups]] = {
    f"{PREFIX}producer.": (
        (
            "Throughput",
            (
                Panel("Records sent", "records/s", (("", "record.send.total|record.send.rate"),)),
                Panel("Bytes sent", "B/s", (("", "outgoing.byte.total|outgoing.byte.rate"),)),
            ),
        ),
        (
            "Latency",
            (
                *requests("Request latency"),
                Panel("Request latency", "ms", both("request.latency")),
            ),
        ),
        (
            "Errors",
            (
                Panel(
                    "Retries and errors",
                    "records/s",
                    (
                        ("retries", "record.retry.total|record.retry.rate"),
                        ("errors", "record.error.total|record.error.rate"),
                    ),
                ),
            ),
        ),
        (
            "Queue and batches",
            (
                Panel("Time in the queue", "ms", both("record.queue.time")),
                Panel("Batch size", "B", both("batch.size")),
                Panel(
                    "Buffer", "B", (("available", "buffer.available.bytes"), ("all", "buffer.total.bytes"))
                ),
            ),
        ),
        ("Throttling", (Panel("Throttle time of Produce", "ms", both("produce.throttle.time")),)),
        ("Connections", CONNECTIONS),
    ),
    f"{PREFIX}consumer.": (
        (
            "Throughput",
            (
                Panel(
                    "Records consumed",
                    "records/s",
                    (("", "fetch.manager.records.consumed.total|fetch.manager.records.consumed.rate"),),
                ),
                Panel(
                    "Bytes consumed",
                    "B/s",
                    (("", "fetch.manager.bytes.consumed.total|fetch.manager.bytes.consumed.rate"),),
                ),
            ),
        ),
        (
            "Latency",
            (
                Panel("Fetch latency", "ms", both("fetch.manager.fetch.latency")),
                *requests("Request latency"),
                Panel("Commit latency", "ms", both("coordinator.commit.latency")),
            ),
        ),
        (
            "Poll",
            (
                Panel("Share of the time in poll()", "1", (("", "poll.idle.ratio.avg"),)),
                Panel("Time between polls", "ms", both("time.between.poll")),
            ),
        ),
        (
            "Lag",
            (
                Panel("Largest lag", "records", (("", "fetch.manager.records.lag.max"),)),
                Panel("Lag by partition", "records", (("", "fetch.manager.records.lag"),)),
            ),
        ),
        (
            "Group",
            (
                Panel("Assigned partitions", "partitions", (("", "coordinator.assigned.partitions"),)),
                Panel("Rebalance latency", "ms", both("coordinator.rebalance.latency")),
                Panel("Time in rebalances", "ms/s", (("", "coordinator.rebalance.latency.total"),)),
            ),
        ),
        ("Throttling", (Panel("Throttle time of Fetch", "ms", both("fetch.manager.fetch.throttle.time")),)),
        ("Connections", CONNECTIONS),
    ),
    f"{PREFIX}admin.client.": (
        ("Throughput", (Panel("Requests", "requests/s", (("", "request.total|request.rate"),)),)),
        ("Latency", requests("Request latency")),
        ("Connections", CONNECTIONS),
    ),
    OBSERVED: (
        (
            "Throughput",
            (
                Panel("Records produced", "records/s", (("", "produce.records"),)),
                Panel("Bytes produced", "B/s", (("", "produce.bytes"),)),
                Panel("Bytes fetched", "B/s", (("", "fetch.bytes"),)),
            ),
        ),
        ("Errors", (Panel("Errors", "errors/s", (("", "errors"),)),)),
        ("Throttling", (Panel("Throttle time", "ms/s", (("", "throttle.time"),)),)),
        ("Connections", (Panel("Open connections", "connections", (("", "connections.open"),)),)),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The time that the plots of a page span."""

    begin_ms: int
    end_ms: int
    scale: float = 1.0
    """Part of their full length that histories have."""
    step_ms: int = 0
    """The distance of points from tables; 0 without any."""
    notes: tuple[str, ...] = ()
    """The reasons why points of the tables are missing."""


class ClientPlots:
    """Draws the plots of one client.

    Args:
        detail: The client, with points within the window.
        window: The time.
        told: What it is told to push; None if the cluster does not tell.
    """

    def __init__(self, detail: ClientDetail, window: Window, told: Told | None) -> None:
        self.detail, self.window, self.told = detail, window, told
        self.series: dict[str, list[SeriesRow]] = {}
        for each in detail.series:
            self.series.setdefault(each.metric, []).append(each)
        self.number = 0

    def groups(self) -> list[Group]:
        """The groups of the roles that the client has metrics of."""
        found = []
        for prefix, groups in ROLES.items():
            if any(name.startswith(prefix) for name in self.series):
                found += [
                    Group(title=title, panels=tuple(self.panel(prefix, each) for each in panels))
                    for title, panels in groups
                ]
        return found

    def panel(self, prefix: str, panel: Panel) -> Shown:
        """One panel with its values, and the reasons for those that it lacks."""
        lines: list[Line] = []
        levels: list[Level] = []
        missing: list[str] = []
        for name, alternatives in panel.metrics:
            metrics = [prefix + each for each in alternatives.split("|")]
            rows = next((self.whole(each) for each in metrics if each in self.series), [])
            if not rows:
                missing.append(
                    f"{name}: {self.reason(metrics)}" if name else self.reason(metrics).capitalize()
                )
                continue
            lines += [self.line(name, row) for row in rows]
            levels += self.levels(name, rows[0])
        self.number += 1
        drawn = None
        if lines:
            drawn = plot(
                f"plot-{self.number}",
                panel.title,
                panel.unit,
                lines,
                self.window.begin_ms,
                self.window.end_ms,
                levels,
            )
        return Shown(title=panel.title, plot=drawn, missing=tuple(missing))

    def whole(self, metric: str) -> list[SeriesRow]:
        """The series of a metric with the fewest labels; others are parts of them.

        Those of the largest values come first, in the order of their labels: so colors stay.
        """
        rows = self.series[metric]
        fewest = min(len(each.labels) for each in rows)
        found = [each for each in rows if len(each.labels) == fewest]
        found.sort(key=lambda each: -(each.value or 0.0))
        return sorted(found[:MOST_LINES], key=lambda each: each.labels) + found[MOST_LINES:]

    def reason(self, metrics: Sequence[str]) -> str:
        """Why a client has no values of a metric."""
        row = self.detail.row
        if not any(reports(row.software, row.version, each) for each in metrics):
            return "not reported by this library"
        if self.told is not None and not any(map(self.told.asks_for, metrics)):
            return "no subscription asks for it"
        return "no values yet"

    def line(self, name: str, row: SeriesRow) -> Line:
        labels = label_text(row.labels)
        points = with_gaps(row.points, self.usual_ms)
        text = ", ".join(filter(None, (name, labels))) or "this client"
        return Line(name=text, points=points)

    @property
    def usual_ms(self) -> Callable[[int], float]:
        """The usual distance of points of an age: older ones are fewer."""
        interval_ms, last_ms = self.detail.row.interval_ms, self.detail.row.last_ms
        scale = self.window.scale

        def usual(time_ms: int) -> float:
            age_ms = last_ms - time_ms
            steps = [each.step_ms for each in LEVELS if age_ms <= each.span_ms * scale]
            return max(interval_ms, self.window.step_ms, steps[0] if steps else LEVELS[-1].step_ms)

        return usual

    def levels(self, name: str, row: SeriesRow) -> list[Level]:
        """The median of its peers, and the thresholds of findings that compare values of this metric."""
        found: dict[str, Level] = {}
        if row.peers is not None and name in ("", AVERAGE):
            found["peers"] = Level(name="median of its peers now", value=row.peers, kind="peers")
        for each in self.detail.findings:
            trouble = TROUBLES.get(each.id)
            if each.metric == row.metric and trouble and not trouble.per and not trouble.over_s:
                found[each.id] = Level(name=f"threshold of {each.id}", value=each.threshold, kind="threshold")
        return list(found.values())

    def evidence(self, number: int, finding: Finding) -> Plot | None:
        """The values that a finding compares with its threshold; None if it is one value."""
        if len(finding.evidence) < 2:
            return None
        begin_ms, end_ms = finding.evidence[0][0], finding.evidence[-1][0]
        labels = label_text(finding.labels)
        return plot(
            f"evidence-{number}",
            f"Evidence of {finding.id}",
            finding.unit,
            [Line(name=labels or "this client", points=with_gaps(finding.evidence, self.usual_ms))],
            min(begin_ms, end_ms - EVIDENCE_MS),
            end_ms,
            [Level(name="threshold", value=finding.threshold, kind="threshold")],
        )
