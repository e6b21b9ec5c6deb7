"""Findings: the troubles of a client that its last hours show, each with its evidence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from odradek.findings.hints import FINDINGS, SHARED
from odradek.findings.troubles import (
    BY_ID,
    JAVA,
    LIBRDKAFKA,
    STEP_S,
    STEPS,
    WARM_UP_S,
    Condition,
    Kind,
    Trouble,
)
from odradek_console.engine.client_series import ClientSeries, Labels, Place
from odradek_console.engine.movement import cause_of, lag_of
from odradek_console.engine.series_history import LEVELS
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


class Life(NamedTuple):
    """How long a client has lived, and how often it pushes."""

    first_ms: int
    interval_ms: int
    muted_ms: int = 0
    """Until when its quota has held back its pushes, so that what it has told last holds; 0 if it pushes."""

    @property
    def warm_ms(self) -> int:
        """Before this time it only begins: nothing but a loss is asked."""
        return self.first_ms + max(int(WARM_UP_S * 1000), self.interval_ms)

    @property
    def counted_ms(self) -> int:
        """The first value of a counter is no increase. It is in a row before this time."""
        return self.first_ms + LEVELS[0].step_ms

    @property
    def keep_ms(self) -> int:
        """For how long a value is good: a minute, or two push intervals."""
        return max(60_000, 2 * self.interval_ms)

    @property
    def step_ms(self) -> int:
        return max(int(STEP_S * 1000), self.interval_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding(JsonRow):
    """A trouble of a client."""

    id: str
    kind: Kind
    """A note is no trouble."""
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
    ended_ms: int = 0
    """When it was over; 0 while it goes on."""
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
    life: Life,
    distrusted: frozenset[str] = frozenset(),
) -> list[Finding]:
    """The troubles of a client.

    Args:
        library: Its library, see `libraries.library_of`.
        series: Its series; None if it has none.
        made: Values of metrics that no client sends.
        life: Its first push and its push interval: a value stands for the interval before it.
        distrusted: Metrics whose values are wrong in this version of the library.
    """
    found: list[Finding] = []
    for trouble in (*FINDINGS, *SHARED):
        # A standard metric has the same name in every library, also in one that the table does not list.
        metric = trouble.metrics.get(library) or trouble.metrics.get(LIBRDKAFKA)
        if metric is None or not distrusted.isdisjoint((metric, *[each.metric for each in trouble.also])):
            continue
        if metric in made:
            found += [of_made(trouble, metric, each) for each in made[metric] if beyond(trouble, each.value)]
        elif series is not None and metric in series.places:
            found += of_series(trouble, metric, series, life)
    return found


def beyond(trouble: Trouble, value: float) -> bool:
    return BEYOND[trouble.op](value, trouble.threshold)


def of_made(trouble: Trouble, metric: str, made: Made) -> Finding:
    found = finding(trouble, metric, (), made.value, made.since_ms)
    return replace(found, detail=made.detail, advice=made.advice or found.advice)


def of_series(trouble: Trouble, metric: str, series: ClientSeries, life: Life) -> Iterable[Finding]:
    """The series of a client that are beyond the threshold for long enough."""
    if not is_asked(trouble, series, life):
        return
    if trouble.moves is not None:
        yield from of_lag(trouble, metric, series, life)
        return
    keep_ms = life.keep_ms if trouble.keeps else 0
    fresh_ms = min(series.fresh_ms(life.interval_ms), series.last_ms - keep_ms)
    for group in groups_of(trouble, metric, series):
        values = compared(trouble, series, group, life)
        run = run_of(trouble, values, keep_ms)
        if not run or run[0][0] < fresh_ms:
            continue  # over, or no longer pushed
        # What happened once is in all values of a minute: the first one stands for no time before it.
        since_ms = run[-1][0] - (0 if trouble.over_s or trouble.keeps else life.interval_ms)
        if max(run[0][0], life.muted_ms if trouble.keeps else 0) - since_ms < trouble.seen_s * 1000:
            continue
        if trouble.steps and steps_of(trouble, series, group, run[0][0], life) < trouble.steps:
            continue
        labels = group[0].labels if len(group) == 1 else ()
        yield finding(trouble, metric, labels, run[0][1], since_ms, values)


def is_asked(trouble: Trouble, series: ClientSeries, life: Life) -> bool:
    """Whether a trouble means something now in the life of a client."""
    if not trouble.begins_at_first and max(series.last_ms, life.muted_ms) < life.warm_ms:
        return False
    fresh_ms = series.fresh_ms(life.interval_ms)
    return all(holds(series, each, fresh_ms) for each in trouble.also) and not any(
        held(series, each, series.last_ms - life.keep_ms) for each in trouble.unless
    )


def groups_of(trouble: Trouble, metric: str, series: ClientSeries) -> Iterator[list[Place]]:
    """The series whose values are compared together."""
    places = series.places[metric] if trouble.agg == "each" and trouble.labels else series.whole(metric)
    if trouble.agg != "each":
        yield list(places)
        return
    for each in places:
        if not trouble.skip or not re.fullmatch(trouble.skip, dict(each.labels).get(trouble.labels[0], "")):
            yield [each]


def run_of(trouble: Trouble, values: Values, keep_ms: int) -> list[tuple[int, float]]:
    """The latest values beyond the threshold, the newest first, without a longer pause than the given one."""
    run: list[tuple[int, float]] = []
    for each in reversed(values):
        if beyond(trouble, each[1]):
            run.append(each)
        elif (run or values)[-1][0] - each[0] >= keep_ms:
            break
    return run


def steps_of(trouble: Trouble, series: ClientSeries, group: Sequence[Place], end_ms: int, life: Life) -> int:
    """In how many of the latest steps the counter has increased by its share of the threshold."""
    added, limit = [0.0] * STEPS, trouble.threshold / STEPS * life.step_ms / (STEP_S * 1000)
    for place in group:
        for time_ms, value in counted(trouble, series, place, life):
            step = (end_ms - time_ms) // life.step_ms
            if 0 <= step < STEPS:
                added[step] += value
    return sum(each > limit for each in added)


def holds(series: ClientSeries, condition: Condition, since_ms: int) -> bool:
    """Whether a further condition holds. A client that does not push its metric now cannot say."""
    if condition.over_s:
        places = series.whole(condition.metric)
        latest = [increases(series.values(each), int(condition.over_s * 1000))[-1:] for each in places]
        values = [value for found in latest for time_ms, value in found if time_ms >= since_ms]
    else:
        values = series.latest(condition.metric, since_ms)
    return bool(values) and BEYOND[condition.op](max(values), condition.threshold)


def held(series: ClientSeries, condition: Condition, since_ms: int) -> bool:
    """Whether a condition has held at a time since the given one."""
    return any(
        time_ms >= since_ms and BEYOND[condition.op](value, condition.threshold)
        for place in series.whole(condition.metric)
        for time_ms, value in reversed(series.values(place))
    )


def of_lag(trouble: Trouble, metric: str, series: ClientSeries, life: Life) -> Iterable[Finding]:
    """The partition with the largest lag of those that are in trouble."""
    window_ms = max(60_000, life.interval_ms * 3 // 2)
    lags = [lag_of(series, place, trouble.position, window_ms) for place in series.places[metric]]
    worst = max(
        (each for each in lags if each is not None and each.moves is trouble.moves),
        key=lambda each: each.lag,
        default=None,
    )
    if worst is not None and worst.values[-1][0] >= series.fresh_ms(life.interval_ms):
        found = finding(trouble, metric, worst.labels, worst.lag, worst.values[0][0], worst.values)
        yield replace(found, detail=cause_of(series, series.fresh_ms(life.interval_ms)))


def of_group(
    measured: Iterable[tuple[str, str, float, int]], series: ClientSeries | None, life: Life
) -> Iterator[Finding]:
    """The troubles of a client with its group's topics, as a host or a gateway measures them."""
    for name, topic, lag, since_ms in measured:
        trouble = BY_ID[name]
        if series is not None and is_asked(trouble, series, life):
            found = finding(trouble, trouble.metrics[JAVA], (("topic", topic),), lag, since_ms)
            yield replace(found, detail=cause_of(series, series.fresh_ms(life.interval_ms)))


def compared(trouble: Trouble, series: ClientSeries, group: Sequence[Place], life: Life) -> Values:
    """The values to compare with the threshold, by time."""
    values = over(trouble, series, group, life)
    if not trouble.per:
        return values
    divisors = dict(over(trouble, series, series.whole(trouble.per), life))
    return [(time_ms, value / divisors[time_ms]) for time_ms, value in values if divisors.get(time_ms)]


def over(trouble: Trouble, series: ClientSeries, group: Sequence[Place], life: Life) -> Values:
    """The values of a metric by time, or its increases over the trouble's time."""
    by_time: dict[int, list[float]] = {}
    window_ms = STEPS * life.step_ms if trouble.steps else int(trouble.over_s * 1000)
    scale = trouble.over_s * 1000 / window_ms if window_ms else 1.0
    for place in group:
        if window_ms:
            values = increases(counted(trouble, series, place, life), window_ms)
        else:
            values = series.values(place)
        for time_ms, value in values:
            by_time.setdefault(time_ms, []).append(value * scale)
    unite = UNITED.get(trouble.agg, max)
    return sorted((time_ms, unite(values)) for time_ms, values in by_time.items())


def counted(trouble: Trouble, series: ClientSeries, place: Place, life: Life) -> Values:
    """The increases of a counter by time."""
    begin_ms = 0 if trouble.begins_at_first else life.counted_ms
    return [(time_ms, value if time_ms >= begin_ms else 0.0) for time_ms, value in series.values(place)]


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


def finding(
    trouble: Trouble, metric: str, labels: Labels, value: float, since_ms: int, values: Values = ()
) -> Finding:
    return Finding(
        id=trouble.id,
        kind=trouble.kind,
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
