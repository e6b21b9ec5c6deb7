"""The few values of a client that matter most: of each the best source that there is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from odradek.findings.client_metrics import PREFIX
from odradek.findings.incidents import OBSERVED
from odradek.findings.troubles import CONSUMER, FETCH, PRODUCER
from odradek_console.engine.client import Client
from odradek_console.engine.client_entry import State
from odradek_console.engine.client_series import ClientSeries, Place
from odradek_console.engine.fleet import Fleet
from odradek_console.engine.lags import GROUP, Behind
from odradek_console.engine.libraries import defects_of
from odradek_console.engine.percentile import LATENCY
from odradek_console.rows import Figure, Sparkline
from odradek_console.text import readable

LAG: Final = f"{GROUP}lag"
HOUR_MS: Final = 3_600_000
STEPS: Final = 12
"""Of a sparkline."""
PUSHED, SEEN, MEASURED = "pushed", "observed", "measured"
"""Who tells a figure: the client itself, a gateway or a host that observes it, or who measures a lag."""
IN_TABLES: Final = "tables"
"""The source of a client that the console has forgotten: the tables tell of it."""


class Source(NamedTuple):
    """A metric that tells a figure."""

    metric: str
    unit: str
    what: str
    """What it is, where that differs."""


NOT_PUSHED: Final = "*"
"""Mark of a figure that the client does not push itself."""
KINDS: Final = frozenset({"p99", "max", "avg"})
"""What a figure is must be said with it."""
RATE, BYTES, MS, SHARE, RECORDS = "records/s", "B/s", "ms", "share", "records"
SOURCES: Final = {
    "records": (
        Source(PRODUCER + "record.send.total", RATE, "sent"),
        Source(PRODUCER + "record.send.rate", RATE, "sent"),
        Source(FETCH + "records.consumed.total", RATE, "read"),
        Source(FETCH + "records.consumed.rate", RATE, "read"),
        Source(OBSERVED + "produce.records", RATE, "sent"),
        Source(OBSERVED + "topic.fetch.records", RATE, "read"),
    ),
    "bytes": (
        Source(PRODUCER + "topic.byte.total", BYTES, "sent"),
        Source(PRODUCER + "outgoing.byte.total", BYTES, "sent, with requests"),
        Source(FETCH + "bytes.consumed.total", BYTES, "read"),
        Source(FETCH + "bytes.consumed.rate", BYTES, "read"),
        Source(CONSUMER + "incoming.byte.total", BYTES, "read, with responses"),
        Source(OBSERVED + "produce.bytes", BYTES, "sent"),
        Source(OBSERVED + "fetch.bytes", BYTES, "read"),
    ),
    "latency": (
        Source(PRODUCER + "request.latency.max", MS, "max"),
        Source(PRODUCER + "request.latency.avg", MS, "avg"),
        Source(PRODUCER + "node.request.latency.max", MS, "max"),
        Source(PRODUCER + "node.request.latency.avg", MS, "avg"),
        Source(FETCH + "fetch.latency.max", MS, "max"),
        Source(FETCH + "fetch.latency.avg", MS, "avg"),
        Source(CONSUMER + "node.request.latency.max", MS, "max"),
        Source(CONSUMER + "node.request.latency.avg", MS, "avg"),
    ),
    "throttled": (
        Source(PRODUCER + "produce.throttle.time.avg", MS, "avg"),
        Source(FETCH + "fetch.throttle.time.avg", MS, "avg"),
        Source(OBSERVED + "quota.throttled.time", "ms/s", "of the time"),
        Source(OBSERVED + "throttle.time", "ms/s", "of the time"),
    ),
    "idle": (Source(CONSUMER + "poll.idle.ratio.avg", SHARE, "in poll()"),),
    "lag": (
        Source(FETCH + "records.lag.max", RECORDS, "largest partition"),
        Source(FETCH + "records.lag", RECORDS, "all partitions"),
    ),
}
"""The sources of each figure, the best one first."""
FIGURES: Final = {
    "records": "Records",
    "bytes": "Bytes",
    "latency": "Latency",
    "lag": "Lag",
    "lag_s": "Behind",
    "throttled": "Throttled",
    "idle": "Idle",
}
"""Headings of the figures, in the order of a list."""
WORST: Final = frozenset({"latency", "throttled"})
"""Of several series the largest value counts, not the sum."""


def figures_of(fleet: Fleet, client: Client, now_ms: int) -> dict[str, Figure]:
    """The figures of a client now, by id: what it pushes itself, else what is observed of it."""
    distrusted = {
        name for each in defects_of(client.entry.software, client.entry.version) for name in each.wrong
    }
    found: dict[str, Figure] = {}
    tellers = [each for each in tellers_of(fleet, client) if fleet.state(each[0], now_ms) is State.LIVE]
    for name, sources in SOURCES.items():
        trusted = [each for each in sources if each.metric not in distrusted]
        told = [figure for each in tellers if (figure := told_by(*each, trusted, name)) is not None]
        pushed = [each for each in told if each.source == PUSHED]
        if told:
            found[name] = pushed[0] if pushed else joined(name, told)
    measured = [
        Figure(value=each.latency.value, unit=MS, what="p99", source=SEEN, metric=LATENCY)
        for each, series in tellers
        if each.latency.time_ms >= series.fresh_ms(each.entry.interval_ms) and each.latency.value
    ]
    if measured:
        found["latency"] = max(measured, key=lambda each: each.value)
    return found


def marked(figure: Figure | None) -> str:
    """A figure as text, with what it is where that must be said, and the mark of one that is not pushed."""
    if figure is None:
        return "-"
    which = f" {figure.what}" if figure.what in KINDS else ""
    return f"{readable(figure.value, figure.unit)}{which}{'' if figure.source == PUSHED else NOT_PUSHED}"


def tellers_of(fleet: Fleet, client: Client) -> list[tuple[Client, ClientSeries]]:
    """Those that tell of a client and have series, the client itself first."""
    parts = fleet.identities.parts(client) if fleet.identities.is_alone(client) else ()
    return [(each, series) for each in (client, *parts) if (series := fleet.series(each)) is not None]


def told_by(teller: Client, series: ClientSeries, sources: Sequence[Source], name: str) -> Figure | None:
    """A figure from the first metric that has a new value."""
    since_ms = series.fresh_ms(teller.entry.interval_ms)
    for metric, unit, what in sources:
        values = series.latest(metric, since_ms) if metric in series.places else []
        if values:
            value = max(values) if name in WORST else min(values) if name == "idle" else sum(values)
            is_pushed = metric.startswith(PREFIX) and not teller.entry.observed
            return Figure(
                value=value, unit=unit, what=what, source=PUSHED if is_pushed else SEEN, metric=metric
            )
    return None


def joined(name: str, told: Sequence[Figure]) -> Figure:
    """A figure of which several gateways have seen a part each."""
    values = [each.value for each in told if each.unit == told[0].unit]
    return replace(told[0], value=max(values) if name in WORST else sum(values))


def with_lag(figures: dict[str, Figure], lag: Behind | None) -> dict[str, Figure]:
    """The figures with a lag that was measured, which is better than what a client says."""
    if lag is None:
        return figures

    def measured(value: float, unit: str, metric: str) -> Figure:
        return Figure(value=value, unit=unit, what="its partitions", source=MEASURED, metric=metric)

    found = figures | {"lag": measured(lag.records, RECORDS, LAG)}
    return found if lag.seconds is None else found | {"lag_s": measured(lag.seconds, "s", f"{LAG}.time")}


def sparkline_of(fleet: Fleet, client: Client, now_ms: int) -> Sparkline | None:
    """The last hour of the first figure that a client has; None without values."""
    for name, sources in SOURCES.items():
        for source in sources:
            for _, series in tellers_of(fleet, client):
                values = of_hour(series, series.whole(source.metric), now_ms, is_worst=name in WORST)
                if any(values):
                    return Sparkline(figure=name, unit=source.unit, values=tuple(values))
    return None


def of_hour(series: ClientSeries, places: Sequence[Place], now_ms: int, *, is_worst: bool) -> list[float]:
    """The means of the steps of the last hour, from the first one with a value on; those between carry on."""
    return list(carried(means(series, places, now_ms, is_worst=is_worst)))


def means(
    series: ClientSeries, places: Sequence[Place], end_ms: int, *, is_worst: bool, begin_ms: int = 0
) -> dict[int, float]:
    """The means of the steps of the hour before a time, of several series together; none before a begin."""
    since_ms, found = end_ms - HOUR_MS, dict[int, float]()
    rows = (
        [row for row in series.history.rows() if since_ms - HOUR_MS // STEPS <= row.time_ms <= end_ms]
        if places
        else []
    )
    for each in places:
        sums: dict[int, list[float]] = {}
        for time_ms, value in series.history.points(each.place, max(since_ms, begin_ms), rows):
            sums.setdefault((time_ms - since_ms) * STEPS // HOUR_MS, []).append(value)
        for step, values in sums.items():
            mean = sum(values) / len(values)
            found[step] = max(found.get(step, 0.0), mean) if is_worst else found.get(step, 0.0) + mean
    return found


def carried(found: dict[int, float]) -> Iterator[float]:
    """The values by step, in which a client that pushes seldom keeps its last one."""
    last = 0.0
    for step in range(min(found, default=0), max(found, default=-1) + 1):
        last = found.get(step, last)
        yield last
