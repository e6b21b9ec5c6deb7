"""The plots of a client: the metrics of its role by concern."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.findings.client_metrics import client_metrics
from odradek.findings.concerns import CONCERNS, ROLES, Chart, Concern, differing_words
from odradek.findings.hints import FINDINGS
from odradek.findings.presets import presets_for
from odradek_console.engine.client_entry import State
from odradek_console.engine.findings import Finding
from odradek_console.engine.libraries import reports
from odradek_console.engine.series_history import LEVELS
from odradek_console.figures import SEEN
from odradek_console.reading.told import Told
from odradek_console.rows import ClientDetail, SeriesRow
from odradek_console.text import label_text
from odradek_console.web.plots import MOST_LINES, Level, Line, Plot, plot, with_gaps

STATS: Final = {"avg": "average", "max": "largest"}
OBSERVED: Final = "io.odradek.observed.client."
OBSERVED_UNITS: Final = {
    f"{OBSERVED}{name}": unit
    for name, unit in (
        ("produce.records", "records/s"),
        ("produce.bytes", "B/s"),
        ("fetch.bytes", "B/s"),
        ("errors", "errors/s"),
        ("throttle.time", "ms/s"),
        ("connections.open", "connections"),
    )
}
SHOWN: Final = (
    *CONCERNS,
    Concern(
        "observed",
        "Observed by a gateway",
        tuple(Chart(each.removeprefix(OBSERVED).replace(".", " "), (each,)) for each in OBSERVED_UNITS),
    ),
)
"""The table of all concerns, and what gateways tell of clients that push nothing."""
ENOUGH: Final = 3
"""A client that has pushed so often has pushed all that it has."""
TROUBLES: Final = {each.id: each for each in FINDINGS}
EVIDENCE_MS: Final = 60_000
"""The least time that a plot of evidence spans."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A chart on the page."""

    title: str
    plot: Plot | None
    """None if there are no values."""
    missing: tuple[str, ...]
    """The reasons why lines are not shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The charts of one concern."""

    title: str
    panels: tuple[Shown, ...]


def comes_seldom(metric: str) -> bool:
    """Whether a metric has values only after something has happened."""
    known = client_metrics().get(metric)
    return known is None or known.rare


def line_name(metric: str, drawn: tuple[str, ...]) -> str:
    words = differing_words(metric, drawn)
    return STATS.get(words, words.replace(".", " "))


def unit_of(metric: str) -> str:
    """The unit of a metric's values as they are drawn: a counter is drawn as its rate."""
    known = client_metrics().get(metric)
    if known is None:
        return OBSERVED_UNITS[metric]
    counter = client_metrics().get(metric.removesuffix("rate") + "total", known)
    unit = counter.unit.replace("By", "B")
    unit = unit[1:-1] + "s" if unit.startswith("{") else unit
    return f"{unit}/s" if counter.kind == "sum" else unit


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
        """The concerns of the roles that the client has metrics of."""
        roles = tuple(
            each for each in (*ROLES, OBSERVED) if any(name.startswith(each) for name in self.series)
        )
        found = [Group(title=each.title, panels=tuple(self.panels(each, roles))) for each in SHOWN]
        return [each for each in found if each.panels]

    def panels(self, concern: Concern, roles: tuple[str, ...]) -> Iterator[Shown]:
        """The charts of a concern for some roles; mean and maximum by broker are apart."""
        for chart in concern.charts:
            own = Chart(
                chart.title[0].upper() + chart.title[1:],
                tuple(each for each in chart.metrics if each.startswith(roles)),
                tuple(each for each in chart.instead if each.startswith(roles)),
            )
            known = [client_metrics()[each] for each in own.metrics if each in client_metrics()]
            if len(known) > 1 and known[0].levels[0]:
                for each in own.metrics:
                    yield self.panel(Chart(f"{own.title}, {line_name(each, own.metrics)}", (each,)))
            elif own.metrics:
                yield self.panel(own)

    def panel(self, chart: Chart) -> Shown:
        """One chart with its values, and the reasons for those that it lacks."""
        self.number += 1
        names = chart.of(self.series)
        if not names:
            return Shown(title=chart.title, plot=None, missing=(self.reason(chart.names).capitalize(),))
        among = chart.metrics if names[0] in chart.metrics else chart.instead
        lines: list[Line] = []
        levels: list[Level] = []
        for metric in names:
            name, rows = line_name(metric, among), self.whole(metric)
            lines += [self.line(name, row) for row in rows]
            levels += self.levels(name, rows[0])
        begin_ms, end_ms = self.window.begin_ms, self.window.end_ms
        drawn = plot(f"plot-{self.number}", chart.title, unit_of(names[0]), lines, begin_ms, end_ms, levels)
        missing = tuple(
            f"{line_name(each, among)}: {self.reason([each])}" for each in among if each not in names
        )
        return Shown(title=chart.title, plot=drawn, missing=missing)

    def whole(self, metric: str) -> list[SeriesRow]:
        """The series of a metric with the fewest labels; others are parts of them.

        Those of the largest values come first, in the order of their labels: so colors stay.
        """
        rows = self.series[metric]
        own = [each for each in rows if each.source != SEEN]
        rows = own or rows  # what is observed, too, is in the table of all series
        fewest = min(len(each.labels) for each in rows)
        found = [each for each in rows if len(each.labels) == fewest]
        found.sort(key=lambda each: -(each.value or 0.0))
        return sorted(found[:MOST_LINES], key=lambda each: each.labels) + found[MOST_LINES:]

    def reason(self, metrics: Sequence[str]) -> str:
        """Why a client has no values of a metric."""
        row = self.detail.row
        if row.observed and not any(each.startswith(OBSERVED) for each in metrics):
            return "not observed: only a client that pushes tells it"
        if not any(reports(row.software, row.version, each) for each in metrics):
            return "not reported by this library"
        if self.told is not None and not any(map(self.told.asks_for, metrics)):
            return f"not asked for (preset {', '.join(presets_for(metrics))})"
        if row.state is State.GONE:
            return "no values: the client is gone"
        if row.pushes >= ENOUGH and not any(map(comes_seldom, metrics)):
            return "not in its pushes so far"
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
        if row.peers is not None and name in ("", STATS["avg"]):
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
