"""The verdict on each value of a series: whether it is a trouble at that time in the life of its client."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

from odradek.findings.troubles import LEAST_LAG_S, STEP_S, STEPS, WARM_UP_S
from odradek.temporality.clients import silence_ms
from odradek_spark.jobs.life import OF_PUSH, US_PER_MS, Life, Push, Who, exceeds, ms
from odradek_spark.jobs.rules import MS_PER_S, Limits, Rule
from odradek_spark.jobs.series import Value, increase, whole

MINUTE_MS: Final = 60_000
LEAST_VALUES: Final = 3
"""Values of a window of a lag that is full."""
LEAST_HELD_MS: Final = 10_000
Changes = Callable[[str | None, int, float], int]
"""By group, time and length of a window: the clients of the group that live at one end of it only."""


@dataclass(slots=True, eq=False)
class Sample:
    """What a rule compared at a time; or, at the begin of a series, an episode that goes on."""

    ts: int
    start_ts: int | None
    """Start of the covered interval; None for the previous sample."""
    push: Push
    who: Who
    value: float
    limits: Limits
    worse: bool
    """Beyond the threshold, and all conditions of the rule hold."""
    beyond: bool
    """The same with the clearing threshold."""
    fired_ts: int | None = None
    cause: str | None = None
    samples: int = 1
    worst: float | None = None
    """Of an episode; None for the value."""


def judged(rule: Rule, series: Sequence[Value], changes: Changes) -> Iterator[Sample]:
    """The samples of a series, in the order of time. Values that are no number are none.

    A rule that keeps its trouble has no sample of a value that is not beyond the threshold for a short time.
    """
    limits, worse_ms = rule.limits, None
    window_ms = length_ms(rule, max(each.push.interval_ms for each in series))
    at = [ms(each.ts) for each in series]
    values = over_window(rule, at, [each.value for each in series], window_ms)
    if rule.per:
        divisors = over_window(rule, at, [each.divisor for each in series], window_ms)
        values = [ratio(value, by) for value, by in zip(values, divisors, strict=True)]
    lags = of_lag(rule, series, at, window_ms)
    for number, each in enumerate(series):
        value, now_ms = values[number], at[number]
        if value is None or value != value:
            continue
        keep_ms = max(MINUTE_MS, 2 * each.push.interval_ms)
        holds = (
            is_asked(rule, each, keep_ms)
            and (not rule.asks.steps or steps_beyond(rule, series, at, number, window_ms) >= rule.asks.steps)
            and lags[number]
            and (not rule.explained or value > rule.explained * changes(each.who[-1], now_ms, window_ms))
        )
        worse = holds and rule.op.holds(value, limits.threshold)
        if worse:
            worse_ms = now_ms
        elif rule.asks.keeps and worse_ms is not None and now_ms - worse_ms < keep_ms:
            continue
        beyond = holds and rule.op.holds(value, limits.clear)
        yield Sample(each.ts, each.start_ts, each.push, each.who, value, limits, worse, beyond)


def length_ms(rule: Rule, interval_ms: int) -> float:
    if rule.asks.moves is not None:
        return max(MINUTE_MS, 1.5 * interval_ms)
    if rule.asks.steps:
        return STEPS * max(STEP_S * MS_PER_S, interval_ms)
    return rule.over_s * MS_PER_S


def over_window(
    rule: Rule, at: Sequence[int], values: Sequence[float | None], window_ms: float
) -> Sequence[float | None]:
    """The increase over the window, for the rule's time, if it compares that."""
    if not rule.over_s:
        return values
    steps = [each or 0.0 for each in values]
    scale = rule.over_s * MS_PER_S
    return [increase(at, steps, now_ms, window_ms) * scale / window_ms for now_ms in at]


def ratio(value: float | None, divisor: float | None) -> float | None:
    return None if value is None or not divisor else value / divisor


def is_asked(rule: Rule, value: Value, keep_ms: int) -> bool:
    push = value.push
    warm_ms = max(WARM_UP_S * MS_PER_S, push.interval_ms)
    if not rule.is_early and (push.age_ms < warm_ms or push.terminating):
        return False
    is_explained = value.explained_ts is not None and ms(value.ts) - ms(value.explained_ts) <= keep_ms
    return value.is_asked and not is_explained


def steps_beyond(
    rule: Rule, series: Sequence[Value], at: Sequence[int], number: int, window_ms: float
) -> int:
    """In how many steps of the window the sum has increased by its share of the threshold."""
    step_ms = window_ms / STEPS
    limit = rule.threshold / STEPS * (step_ms / (STEP_S * MS_PER_S))
    edges = [bisect_right(at, at[number] - step * step_ms) for step in range(STEPS + 1)]
    return sum(
        exceeds(sum(each.value or 0.0 for each in series[first:end]), limit)
        for end, first in pairwise(edges)
        if first < end
    )


def of_lag(rule: Rule, series: Sequence[Value], at: Sequence[int], window_ms: float) -> list[bool]:
    """Whether a lag has not shrunk for a window, while the position moves and the lag grows, or stays."""
    if rule.asks.moves is None:
        return [True] * len(series)
    found, begin, before = [], 0, 0.0
    for number, (now_ms, each) in enumerate(zip(at, series, strict=True)):
        value = each.value or 0.0
        if not 0.0 < before <= value:
            begin = number
        before = value
        lasts = number - begin + 1 >= LEAST_VALUES and now_ms - at[begin] >= window_ms
        found.append(value > 0.0 and lasts and is_lag(rule, series, at, number, window_ms))
    return found


def is_lag(rule: Rule, series: Sequence[Value], at: Sequence[int], number: int, window_ms: float) -> bool:
    first = bisect_right(at, at[number] - window_ms)
    read = sum(each.read for each in series[first : number + 1])
    if not rule.asks.moves:
        return read == 0.0
    value, before = series[number].value or 0.0, series[first - 1].value if first else None
    least = read / window_ms * MS_PER_S * LEAST_LAG_S
    return exceeds(read, 0.0) and before is not None and value > before and value > least


def held(rule: Rule, samples: Sequence[Sample], now_ms: int) -> list[Sample]:
    """With the samples that a throttled client would have sent: its quota holds back its pushes, too."""
    found = list(samples)
    if rule.asks.keeps and found and found[-1].worse and not found[-1].push.terminating:
        last, push = found[-1], found[-1].push
        interval_ms = max(push.interval_ms, LEAST_HELD_MS)
        until_ms = min(now_ms, ms(last.ts) + push.throttle_ms)
        later = range(ms(last.ts) + interval_ms, until_ms + 1, interval_ms)
        found += [replace(last, ts=at_ms * US_PER_MS) for at_ms in later]
    return found


def of_silence(last: Mapping[str, Any], life: Life, rule: Rule, now_ms: int) -> Sample:
    """The sample of a rule about silence: at the last push of a client, or when it became silent.

    ``last`` is a row of `odradek_spark.jobs.silence.last_pushes`, and ``life`` has labels, and what holds the
    client back.
    """
    interval_ms, recv_ts, limits = last["push_interval_ms"], last["recv_ts"], rule.limits
    latest = max(life.pushes, key=lambda each: each.recv_ts, default=None)
    wait_ms = latest.throttle_ms if latest is not None else 0
    allowed_ms = max(limits.threshold * interval_ms, silence_ms(interval_ms)) + limits.hold_ms + wait_ms
    fire_ms = int(ms(recv_ts) + last["away_ms"] + allowed_ms)
    is_silent = last["is_expected"] and not life.is_lost and now_ms > fire_ms
    ts = fire_ms * US_PER_MS if is_silent else recv_ts
    labels = whole([each[len(OF_PUSH) :] for each in life.whos] or [(None, None)])
    return Sample(
        ts=ts,
        start_ts=recv_ts,
        push=Push(ts, recv_ts, interval_ms, last["terminating"], wait_ms),
        who=(*(last[name] for name in OF_PUSH), *labels),
        value=(ms(ts) - ms(recv_ts)) / interval_ms,
        limits=limits._replace(hold_ms=0.0),
        worse=is_silent,
        beyond=is_silent,
    )
