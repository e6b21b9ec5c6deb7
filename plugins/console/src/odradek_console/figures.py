"""The few values of a client that matter most, whatever its library calls them."""

from __future__ import annotations

from typing import Final

from odradek.findings.client_metrics import PREFIX
from odradek_console.engine.client_series import ClientSeries
from odradek_console.rows import Figure

FETCH: Final = "consumer.fetch.manager."
OBSERVED: Final = "io.odradek.observed.client."
SOURCES: Final = (
    (
        "rate",
        "records/s",
        (
            f"{PREFIX}producer.record.send.total",
            f"{PREFIX}producer.record.send.rate",
            f"{PREFIX}{FETCH}records.consumed.total",
            f"{PREFIX}{FETCH}records.consumed.rate",
            f"{OBSERVED}produce.records",
        ),
    ),
    (
        "latency",
        "ms",
        (
            f"{PREFIX}producer.request.latency.avg",
            f"{PREFIX}{FETCH}fetch.latency.avg",
            f"{PREFIX}producer.node.request.latency.avg",
            f"{PREFIX}consumer.node.request.latency.avg",
        ),
    ),
    ("idle", "share of the time in poll()", (f"{PREFIX}consumer.poll.idle.ratio.avg",)),
    ("lag", "records", (f"{PREFIX}{FETCH}records.lag.max",)),
)
"""Id, unit, and the metrics of which the first one that a client has is shown."""
LATEST: Final = 30
"""Points of a figure."""


def figures_of(series: ClientSeries | None) -> dict[str, Figure]:
    """The figures of a client, by id."""
    if series is None:
        return {}
    found = {}
    for name, unit, metrics in SOURCES:
        figure = figure_of(series, name, unit, metrics)
        if figure is not None:
            found[name] = figure
    return found


def figure_of(series: ClientSeries, name: str, unit: str, metrics: tuple[str, ...]) -> Figure | None:
    """The figure from the first metric that has a value. Of several series the largest value counts."""
    for metric in metrics:
        by_time: dict[int, float] = {}
        for place in series.whole(metric):
            for time_ms, value in series.history.points(place.place, rows=series.recent):
                by_time[time_ms] = max(value, by_time.get(time_ms, value))
        if by_time:
            points = tuple(by_time[each] for each in sorted(by_time))[-LATEST:]
            return Figure(id=name, unit=unit, value=points[-1], points=points)
    return None
