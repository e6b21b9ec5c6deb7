"""Findings: the troubles of a client that its last hours show, each with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Final

from odradek.findings.troubles import FINDINGS, LIBRDKAFKA, Condition, Trouble
from odradek_console.engine.client_series import ClientSeries, Labels, Place
from odradek_console.json_form import JsonRow

BEYOND: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">": lambda value, threshold: value > threshold,
    ">=": lambda value, threshold: value >= threshold,
    "<": lambda value, threshold: value < threshold,
    "<=": lambda value, threshold: value <= threshold,
}
UNITED: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "sum": sum,
    "min": min,
    "max": max,
    "avg": lambda values: sum(values) / len(values),
}
EVIDENCE: Final = 60
"""Points of evidence."""
Values = Sequence[tuple[int, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(JsonRow):
    """A trouble of a client."""

    id: str
    question: str
    advice: str
    source: str
    metric: str
    labels: Labels
    """The labels of the series; empty if it is a value of the whole client."""
    value: float
    unit: str
    op: str
    threshold: float
    since_ms: int
    evidence: tuple[tuple[int, float], ...] = ()
    """The values by time, the newest last."""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The value of a metric that no client sends."""

    value: float
    since_ms: int
    detail: str = ""
    advice: str = ""
    """Instead of the trouble's."""


def findings_of(
    library: str,
    series: ClientSeries | None,
    made: Mapping[str, Sequence[Made]],
    interval_ms: int,
    distrusted: frozenset[str] = frozenset(),
) -> list[Finding]:
    """The troubles of a client.

    Args:
        library: Its library, see `libraries.library_of`.
        series: Its series; None if it has none.
        made: Values of metrics that no client sends.
        interval_ms: Its push interval: a value stands for the interval before it.
        distrusted: Metrics whose values are wrong in this version of the library.
    """
    found: list[Finding] = []
    for trouble in FINDINGS:
        # A standard metric has the same name in every library, also in one that the table does not list.
        metric = trouble.metrics.get(library) or trouble.metrics.get(LIBRDKAFKA)
        if metric is None or not distrusted.isdisjoint((metric, *[each.metric for each in trouble.also])):
            continue
        if metric in made:
            found += [of_made(trouble, metric, each) for each in made[metric] if beyond(trouble, each.value)]
        elif series is not None and metric in series.places:
            found += of_series(trouble, metric, series, interval_ms)
    return found


def beyond(trouble: Trouble, value: float) -> bool:
    return BEYOND[trouble.op](value, trouble.threshold)


def of_made(trouble: Trouble, metric: str, made: Made) -> Finding:
    found = finding(trouble, metric, (), made.value, made.since_ms)
    return replace(found, detail=made.detail, advice=made.advice or found.advice)


def of_series(trouble: Trouble, metric: str, series: ClientSeries, interval_ms: int) -> Iterable[Finding]:
    """The series of a client that are beyond the threshold for long enough."""
    fresh_ms = series.fresh_ms(interval_ms)
    if not all(holds(series, each, fresh_ms) for each in trouble.also):
        return
    places = series.places[metric] if trouble.agg == "each" and trouble.labels else series.whole(metric)
    groups = [[each] for each in places] if trouble.agg == "each" else [list(places)]
    for group in groups:
        values = compared(trouble, series, group)
        run = list(takewhile(lambda each: beyond(trouble, each[1]), reversed(values)))
        if not run or run[0][0] < fresh_ms:
            continue  # over, or no longer pushed
        since_ms = run[-1][0] - (0 if trouble.over_s else interval_ms)
        if run[0][0] - since_ms >= trouble.for_s * 1000:
            labels = group[0].labels if len(group) == 1 else ()
            yield finding(trouble, metric, labels, run[0][1], since_ms, values)


def holds(series: ClientSeries, condition: Condition, since_ms: int) -> bool:
    """Whether a further condition holds. A client that does not push its metric now cannot say."""
    values = series.latest(condition.metric, since_ms)
    return bool(values) and BEYOND[condition.op](max(values), condition.threshold)


def compared(trouble: Trouble, series: ClientSeries, group: Sequence[Place]) -> Values:
    """The values to compare with the threshold, by time."""
    values = over(trouble, series, group)
    if not trouble.per:
        return values
    divisors = dict(over(trouble, series, series.whole(trouble.per)))
    return [(time_ms, value / divisors[time_ms]) for time_ms, value in values if divisors.get(time_ms)]


def over(trouble: Trouble, series: ClientSeries, group: Sequence[Place]) -> Values:
    """The values of a metric by time, or its increases over the trouble's time."""
    if not group:
        return []
    by_time: dict[int, list[float]] = {}
    for place in group:
        values: Values = series.values(place)
        if trouble.over_s:
            window_ms = int(trouble.over_s * 1000)
            values = increases(values, window_ms) if series.is_counter(place) else rises(values, window_ms)
        for time_ms, value in values:
            by_time.setdefault(time_ms, []).append(value)
    unite = UNITED.get(trouble.agg, max)
    return sorted((time_ms, unite(values)) for time_ms, values in by_time.items())


def increases(values: Values, window_ms: int) -> Values:
    """At each time, the increase within the window before it.

    A value is the increase since the one before it. Of a value that began before the window, the same part
    counts as of its time.
    """
    found, begin, total = [], 0, 0.0
    for time_ms, value in values:
        total += value
        begin_ms = time_ms - window_ms
        while values[begin][0] <= begin_ms:
            total -= values[begin][1]
            begin += 1
        outside = 0.0
        if begin:
            (before_ms, _), (oldest_ms, oldest) = values[begin - 1], values[begin]
            outside = oldest * (begin_ms - before_ms) / (oldest_ms - before_ms)
        found.append((time_ms, max(total - outside, 0.0)))
    return found


def rises(values: Values, window_ms: int) -> Values:
    """At each time, the growth of the value since the begin of the window before it.

    Without a value at the begin, the one before it is compared, and the growth is taken as even.
    """
    found, begin = [], 0
    for place, (time_ms, value) in enumerate(values):
        while begin < place and values[begin + 1][0] <= time_ms - window_ms:
            begin += 1
        before_ms, before = values[begin]
        elapsed_ms = max(time_ms - before_ms, window_ms)
        found.append((time_ms, (value - before) * window_ms / elapsed_ms))
    return found


def finding(
    trouble: Trouble, metric: str, labels: Labels, value: float, since_ms: int, values: Values = ()
) -> Finding:
    return Finding(
        id=trouble.id,
        question=trouble.question,
        advice=trouble.advice,
        source=trouble.source,
        metric=metric,
        labels=labels,
        value=value,
        unit=trouble.unit,
        op=trouble.op,
        threshold=trouble.threshold,
        since_ms=since_ms,
        evidence=tuple(values[-EVIDENCE:]),
    )
