"""Gaps and islands: the samples of a series beyond its threshold, one after another, and their episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.findings.troubles import SILENCE
from odradek_spark.jobs.judged import Sample
from odradek_spark.jobs.life import CLIENT, Push, ms
from odradek_spark.jobs.rules import Limits, Op

SILENCE_INTERVALS: Final = 2.5
"""After this many push intervals without a sample, the state is unknown."""
FORGOTTEN_MS: Final = 3_600_000
"""A client that was silent for so long is gone for good."""
OPEN, CLOSED = "open", "closed"
RECOVERED, SILENT = "recovered", "silent"
Series = tuple[str, str, str | None]
"""Rule, metric and labels of a client's series."""


@dataclass(slots=True)
class Island:
    """Samples of a series beyond the clearing threshold, from the first one beyond the threshold on."""

    samples: list[Sample] = field(default_factory=list)
    begin_ts: int = 0
    fired_ts: int | None = None
    """When it had exceeded the rule's time: it is an episode."""

    def add(self, sample: Sample, begin_ts: int) -> None:
        """Add the next sample, whose interval begins at this time."""
        if self.fired_ts is None and not sample.worse:
            self.samples.clear()
            return
        if not self.samples:
            self.begin_ts = begin_ts
        self.samples.append(sample)
        hold_ms = sample.limits.hold_ms
        if self.fired_ts is None and (not hold_ms or ms(sample.ts) - ms(self.begin_ts) > hold_ms):
            self.fired_ts = sample.ts if sample.fired_ts is None else sample.fired_ts


def carried(known: Mapping[str, Any]) -> Sample:
    """An open episode, as a sample that begins its island; ``known`` is its row, with times as numbers."""
    push = Push(
        recv_ts=known["last_recv_ts"],
        first_ts=known["started_ts"],
        interval_ms=known["push_interval_ms"],
        terminating=False,
        throttle_ms=known["throttle_ms"] or 0,
    )
    clear = known["threshold"] if known["clear"] is None else known["clear"]
    return Sample(
        ts=known["last_ts"],
        start_ts=known["started_ts"],
        push=push,
        who=tuple(known[name] for name in CLIENT),
        value=known["last"],
        limits=Limits(Op(known["op"]), known["threshold"], clear, 0.0),
        worse=True,
        beyond=True,
        fired_ts=known["fired_ts"],
        cause=known["cause"],
        samples=known["samples"],
        worst=known["worst"],
    )


def episodes(series: Series, samples: Sequence[Sample], now_ms: int) -> Iterator[dict[str, Any]]:
    """The episodes of a series, as rows of the table ``anomalies`` with times as numbers.

    Samples beyond the threshold (``worse``) must last for the rule's time. From then on the episode goes on
    while samples are beyond the clearing threshold (``beyond``), until a silence. If its rule was removed, it
    stays open until it is silent.

    Args:
        samples: In the order of time.
        now_ms: The latest receive time in the tables.
    """
    island, before = Island(), None
    for each in samples:
        has_gap = before is not None and is_gap(series, before, each)
        if has_gap or not each.beyond:
            if island.fired_ts is not None:
                yield episode(series, island, SILENT if has_gap else RECOVERED, each.ts)
            island = Island()
        if each.beyond:
            island.add(each, begin_of(each, before, has_gap=has_gap))
        before = each
    if island.fired_ts is not None:
        last = island.samples[-1]
        is_unheard = now_ms - ms(last.push.recv_ts) > allowed_ms(series, last, last.push.throttle_ms)
        yield episode(series, island, SILENT if is_unheard else None, None)


def begin_of(sample: Sample, before: Sample | None, *, has_gap: bool) -> int:
    """The begin of the interval that a sample covers; intervals never overlap."""
    if sample.start_ts is not None:
        return sample.start_ts if before is None else max(sample.start_ts, before.ts)
    return sample.ts if before is None or has_gap else before.ts


def is_gap(series: Series, before: Sample, sample: Sample) -> bool:
    """Whether the time between two samples is too long to know the state.

    A client that was told to wait pushes later: by the time that its last push or this one reports.
    """
    start_ts = sample.ts if sample.start_ts is None else sample.start_ts
    waits_ms = max(before.push.throttle_ms, sample.push.throttle_ms)
    return ms(start_ts) - ms(before.ts) > allowed_ms(series, sample, waits_ms)


def allowed_ms(series: Series, sample: Sample, throttle_ms: int) -> float:
    """The longest silence after which the state is still known."""
    _, name, _ = series
    return FORGOTTEN_MS if name == SILENCE else SILENCE_INTERVALS * sample.push.interval_ms + throttle_ms


def episode(series: Series, island: Island, reason: str | None, next_ts: int | None) -> dict[str, Any]:
    """The row of an island, but for its client instance and its day.

    Args:
        reason: Why it has ended; None: it goes on.
        next_ts: The time of the sample after it, if there is one.
    """
    (rule, name, attrs), samples, last = series, island.samples, island.samples[-1]
    worst = [each.value if each.worst is None else each.worst for each in samples]
    ended_ts = next_ts if name == SILENCE and next_ts is not None else last.ts
    return {
        "rule": rule,
        "name": name,
        "attrs": attrs,
        **dict(zip(CLIENT, last.who, strict=True)),
        "op": last.limits.op.value,
        "threshold": last.limits.threshold,
        "clear": last.limits.clear,
        "started_ts": island.begin_ts,
        "fired_ts": island.fired_ts,
        "last_ts": last.ts,
        "last_recv_ts": last.push.recv_ts,
        "closed_ts": None if reason is None else ended_ts,
        "state": OPEN if reason is None else CLOSED,
        "reason": reason,
        "samples": sum(each.samples for each in samples),
        "worst": max(worst) if last.limits.op.upward else min(worst),
        "last": last.value,
        "push_interval_ms": last.push.interval_ms,
        "throttle_ms": last.push.throttle_ms,
        "cause": max((each.cause for each in samples if each.cause is not None), default=None),
    }
