"""The values that a rule compares: of a metric, with what its conditions and divisors say at the same time.

A rule that reads several metrics compares them at the latest time in their push: Java gives each one of its
own.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import itemgetter
from typing import Final

from odradek.findings.troubles import Condition
from odradek_spark.jobs.life import (
    CUMULATIVE,
    DELTA,
    GAUGE,
    Life,
    Point,
    Push,
    Who,
    exceeds,
    labels_of,
    largest,
    ms,
    smallest,
)
from odradek_spark.jobs.rules import MS_PER_S, Aggregate, Op, Rule

AGGREGATES: Final[Mapping[Aggregate, Callable[[Sequence[float]], float]]] = {
    Aggregate.EACH: largest,  # two points of a series with the same time
    Aggregate.MAX: largest,
    Aggregate.MIN: smallest,
    Aggregate.SUM: sum,
    Aggregate.AVG: lambda values: sum(values) / len(values),
}
Times = Mapping[Push, int]
"""By push: the latest time of what a rule reads of it; empty if the rule reads one metric only."""


@dataclass(slots=True, eq=False)
class Value:
    """The value of a series at a time. ``value`` and ``divisor`` are None where the metric is missing."""

    ts: int
    start_ts: int | None
    """Start of the covered interval; None for the previous value."""
    push: Push
    who: Who
    value: float | None
    divisor: float | None
    read: float
    """What was read of the topic since the push before, if the rule asks for it."""
    is_asked: bool
    """Whether all conditions hold that must."""
    explained_ts: int | None
    """When a condition held last that explains the trouble."""


def series_of(life: Life, rule: Rule) -> dict[str | None, list[Value]]:
    """By labels, or for all series together by None: the values in the order of time."""
    asks, labels = rule.asks, rule.attrs
    values, divisors = life.labelled(rule.metric, labels), life.labelled(rule.per, labels)
    if rule.skip:
        values = [each for each in values if not is_skipped(each, rule)]
    if not values and not divisors:
        return {}
    positions = life.labelled(asks.position, labels)
    also, unless = (
        [(each, life.labelled(each.metric, labels)) for each in conditions]
        for conditions in (asks.also, asks.unless)
    )
    of_conditions = (points for _, points in (*also, *unless))
    times = times_of((values, divisors, positions, *of_conditions)) if len(rule.names) > 1 else {}
    explained = sorted(
        times.get(each.push, each.ts)
        for condition, points in unless
        for each, holds in judged_by(condition, fewest(points), times)
        if holds
    )
    met = [pushes_of(condition, judged_by(condition, fewest(points), times)) for condition, points in also]
    read = steps_read(positions)
    found: defaultdict[str | None, defaultdict[int, list[tuple[Point, bool]]]]
    found = defaultdict(lambda: defaultdict(list))
    is_each = rule.agg is Aggregate.EACH
    for points, is_value in ((fewest(values) if rule.is_whole else values, True), (fewest(divisors), False)):
        for each in points:
            if not rule.over_s or each.temporality in (DELTA, CUMULATIVE):
                ts = times.get(each.push, each.ts)
                found[each.attrs if is_each else None][ts].append((each, is_value))
    return {
        attrs: [
            value_at(rule, ts, told, read, met, latest(explained, ts)) for ts, told in sorted(of_time.items())
        ]
        for attrs, of_time in found.items()
    }


def times_of(read: Iterable[Sequence[Point]]) -> Times:
    times: dict[Push, int] = {}
    for each in chain.from_iterable(read):
        times[each.push] = max(each.ts, times.get(each.push, each.ts))
    return times


def is_skipped(point: Point, rule: Rule) -> bool:
    """Whether a rule does not ask for a series, such as a connection to no broker."""
    text = labels_of(point.attrs).get(rule.asks.labels[0], point.node_id or "")
    return re.search(rule.skip, text, re.ASCII) is not None


def fewest(points: Sequence[Point]) -> Sequence[Point]:
    """The points with the fewest labels in their push, of which the others are parts."""
    depths = [len(labels_of(each.attrs)) for each in points]
    if len(set(depths)) <= 1:
        return points
    least: dict[Push, int] = {}
    for each, depth in zip(points, depths, strict=True):
        least[each.push] = min(depth, least.get(each.push, depth))
    return [each for each, depth in zip(points, depths, strict=True) if depth == least[each.push]]


def judged_by(condition: Condition, points: Sequence[Point], times: Times) -> Iterator[tuple[Point, bool]]:
    """Points, and whether the condition holds for each."""
    is_above = Op(condition.op).upward
    for each, found in compared(condition, points, times):
        yield each, exceeds(found, condition.threshold) if is_above else found < condition.threshold


def compared(condition: Condition, points: Sequence[Point], times: Times) -> Iterator[tuple[Point, float]]:
    """Points, and what the condition compares at each: its step, or the increase of its series."""
    if not condition.over_s:
        yield from ((each, each.step) for each in points)
        return
    series: defaultdict[str | None, list[tuple[int, Point]]] = defaultdict(list)
    for each in points:
        series[each.attrs].append((ms(times.get(each.push, each.ts)), each))
    for of_series in series.values():
        of_series.sort(key=itemgetter(0))
        at, steps = [now_ms for now_ms, _ in of_series], [each.step for _, each in of_series]
        for now_ms, each in of_series:
            yield each, increase(at, steps, now_ms, condition.over_s * MS_PER_S)


def pushes_of(condition: Condition, judged: Iterable[tuple[Point, bool]]) -> Mapping[Push, bool]:
    """By push, whether a condition holds: one of several series is above a limit, or all are below one."""
    found: dict[Push, bool] = {}
    for point, holds in judged:
        before = found.get(point.push, holds)
        found[point.push] = before or holds if Op(condition.op).upward else before and holds
    return found


def steps_read(positions: Sequence[Point]) -> Mapping[Push, Mapping[str | None, float]]:
    """By push and topic: what was read since the push before."""
    found: defaultdict[Push, defaultdict[str | None, float]] = defaultdict(lambda: defaultdict(float))
    for each in positions:
        found[each.push][each.topic] += each.step
    return found


def increase(at: Sequence[int], steps: Sequence[float], now_ms: int, window_ms: float) -> float:
    """The sum of steps in the window before a time. Of a step that began before it, the same part counts as
    of its time.

    Args:
        at: The times of the steps in milliseconds, in order; one of them is ``now_ms``.
    """
    first, end = bisect_right(at, now_ms - window_ms), bisect_right(at, now_ms)
    before = at[first - 1] if first else 0
    share = (now_ms - window_ms - before) / (at[first] - before) if first else 0.0
    return max(sum(steps[first:end]) - steps[first] * share, 0.0)


def latest(times: Sequence[int], ts: int) -> int | None:
    """The latest of these times that is not after another one."""
    end = bisect_right(times, ts)
    return times[end - 1] if end else None


def value_at(
    rule: Rule,
    ts: int,
    told: Sequence[tuple[Point, bool]],
    read: Mapping[Push, Mapping[str | None, float]],
    met: Sequence[Mapping[Push, bool]],
    explained_ts: int | None,
) -> Value:
    """What the points of a series with the same time say together; ``told`` has divisors as well."""
    points = [point for point, _ in told]
    pushes = list(dict.fromkeys(each.push for each in points))
    values = [counted(rule, point) for point, is_value in told if is_value]
    divisors = [counted(rule, point) for point, is_value in told if not is_value]
    aggregate = AGGREGATES[rule.agg]
    return Value(
        ts,
        ts if rule.over_s or rule.asks.keeps else start_of(points, ts),
        pushes[0] if len(pushes) == 1 else together(pushes),
        whole([each.who for each in points]),
        aggregate(values) if values else None,
        aggregate(divisors) if divisors else None,
        largest(of_topic(read.get(each.push, {}), each.topic) for each in points),
        all(of_condition.get(each, False) for of_condition in met for each in pushes),
        explained_ts,
    )


def counted(rule: Rule, point: Point) -> float:
    if not rule.over_s:
        return point.value
    return point.step if rule.is_early or not point.push.is_begin else 0.0


def start_of(points: Iterable[Point], ts: int) -> int | None:
    """The start of the interval that the points cover; what was once covers none.

    If ``ts`` was corrected for a wrong clock, the start moves, too.
    """
    starts = [
        each.start_ts + ts - each.client_ts
        for each in points
        if each.temporality == DELTA or each.kind == GAUGE
        if each.start_ts is not None and each.client_ts is not None and each.start_ts <= each.client_ts
    ]
    return min(starts, default=None)


def of_topic(read: Mapping[str | None, float], topic: str | None) -> float:
    """What was read of a topic; if no topic is told, of all."""
    return read.get(topic, read.get(None, 0.0))


def together(pushes: Sequence[Push]) -> Push:
    """Pushes with the same time as one."""
    return Push(
        max(each.recv_ts for each in pushes),
        min(each.first_ts for each in pushes),
        max(each.interval_ms for each in pushes),
        any(each.terminating for each in pushes),
        max(each.throttle_ms for each in pushes),
    )


def whole(whos: Sequence[Who]) -> Who:
    """What several points say of their client."""
    if len(set(whos)) == 1:
        return whos[0]
    columns = zip(*whos, strict=True)
    return tuple(max((each for each in column if each is not None), default=None) for column in columns)
