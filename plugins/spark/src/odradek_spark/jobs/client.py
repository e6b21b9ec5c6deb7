"""The tasks that judge clients: one pass over what each of them has told.

A group has the rows of one client instance: its points of the rules' metrics since the time to which a run
looks back, its last push, and its known episodes. A task holds one group at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa

from odradek.findings.troubles import SILENCE
from odradek_spark.jobs.causes import BROKER
from odradek_spark.jobs.islands import OPEN, Series, carried, episodes
from odradek_spark.jobs.judged import Sample, held, judged, of_silence
from odradek_spark.jobs.life import CLIENT, INSTANCE, OF_PUSH, Life
from odradek_spark.jobs.rules import Rule
from odradek_spark.jobs.series import series_of
from odradek_tables.schemas import ANOMALIES, TIMESTAMP

POINT, LAST, KNOWN = "point", "last", "known"
"""The columns of a group, but for the instance: each row has one of them."""
OF_LAST: Final = ("recv_ts", "push_interval_ms", "terminating", "is_expected", "away_ms", *OF_PUSH)
OF_EPISODE: Final = tuple(each for each in ANOMALIES.schema if each.name not in (INSTANCE, "date"))
OF_KNOWN: Final = tuple(each.name for each in OF_EPISODE)
KEY: Final = pa.struct({"place": pa.int32(), "key": pa.string(), "value": pa.string()})
FOUND: Final = pa.schema(
    {INSTANCE: pa.string(), "keys": pa.list_(KEY), "episodes": pa.list_(pa.struct(OF_EPISODE))}
)
"""What is found of a client: ``keys``, what it may have in common with others unless it is gone."""
SAMPLE: Final = pa.schema(
    {
        **dict.fromkeys(("rule", INSTANCE, "name", "attrs", *CLIENT), pa.string()),
        "value": pa.float64(),
        **dict.fromkeys(("ts", "start_ts", "recv_ts"), TIMESTAMP),
        "push_interval_ms": pa.int32(),
        "throttle_ms": pa.int64(),
        "op": pa.string(),
        **dict.fromkeys(("threshold", "clear", "hold_ms"), pa.float64()),
        **dict.fromkeys(("keeps", "terminating", "worse", "beyond"), pa.bool_()),
    }
)
Lives = Mapping[str, Sequence[tuple[int, int]]]
"""By group: the begin and the end of each client in milliseconds."""


@dataclass(frozen=True, slots=True)
class Judge:
    """The rules, and what they ask of other clients."""

    rules: Sequence[Rule]
    lives: Lives = field(default_factory=dict)

    def samples(self, life: Life) -> Iterator[tuple[Rule, Series, list[Sample]]]:
        """The samples of each series that a rule compares."""
        for rule in self.rules:
            for attrs, values in series_of(life, rule).items():
                yield rule, (rule.id, rule.metric, attrs), list(judged(rule, values, self.changes))

    def changes(self, group: str | None, now_ms: int, window_ms: float) -> int:
        """The clients of a group that live now and did not before the window, or the other way round."""
        lives, before_ms = self.lives.get(group or "", ()), now_ms - window_ms
        return sum((begin <= now_ms <= end) != (begin <= before_ms <= end) for begin, end in lives)


@dataclass(frozen=True, slots=True)
class SampleTask:
    """The function of a task that finds the samples of a client, as rows of `SAMPLE`."""

    judge: Judge

    def __call__(self, group: pa.Table) -> pa.Table:
        life, instance = Life(columns_of(group, POINT)), group[INSTANCE][0].as_py()
        found = [
            (rule, series, each) for rule, series, samples in self.judge.samples(life) for each in samples
        ]
        return pa.Table.from_pylist([sample_row(instance, *each) for each in found], SAMPLE)


def sample_row(instance: str, rule: Rule, series: Series, sample: Sample) -> dict[str, Any]:
    push = sample.push
    return {
        INSTANCE: instance,
        **dict(zip(("rule", "name", "attrs"), series, strict=True)),
        **dict(zip(CLIENT, sample.who, strict=True)),
        **{name: getattr(sample, name) for name in ("value", "ts", "start_ts", "worse", "beyond")},
        **{name: getattr(push, name) for name in ("recv_ts", "throttle_ms", "terminating")},
        **sample.limits._asdict(),
        "push_interval_ms": push.interval_ms,
        "keeps": rule.asks.keeps,
    }


@dataclass(frozen=True, slots=True)
class DetectTask:
    """The function of a task that finds the episodes of a client, as a row of `FOUND`."""

    judge: Judge
    of_silence: Sequence[Rule]
    now_ms: int
    """The latest receive time in the tables."""

    def __call__(self, group: pa.Table) -> pa.Table:
        points = columns_of(group, POINT)
        life, known = Life(points), rows_of(group, KNOWN)
        samples = defaultdict(
            list, {series_key(each): [carried(each)] for each in known if each["state"] == OPEN}
        )
        seen: dict[Series, int] = {}
        for each in known:
            series = series_key(each)
            seen[series] = max(each["last_ts"], seen.get(series, each["last_ts"]))
        for series, found in self.samples(life, rows_of(group, LAST)):
            since_ts = seen.get(series)
            samples[series] += [each for each in found if since_ts is None or each.ts > since_ts]
        row = {
            INSTANCE: group[INSTANCE][0].as_py(),
            "keys": in_common(points, life),
            "episodes": [
                each for series, found in samples.items() for each in episodes(series, found, self.now_ms)
            ],
        }
        return pa.Table.from_pylist([row], FOUND)

    def samples(
        self, life: Life, lasts: Sequence[Mapping[str, Any]]
    ) -> Iterator[tuple[Series, list[Sample]]]:
        """The samples of each series, with those that a quota holds back, and those of silence."""
        for rule, series, found in self.judge.samples(life):
            yield series, held(rule, found, self.now_ms)
        for each in lasts:
            for rule in self.of_silence:
                yield (rule.id, SILENCE, None), [of_silence(each, life, rule, self.now_ms)]


def series_key(known: Mapping[str, Any]) -> Series:
    return known["rule"], known["name"], known["attrs"]


def rows_of(group: pa.Table, column: str) -> list[dict[str, Any]]:
    """The rows of a group that have a column."""
    return [each for each in group[column].to_pylist() if each is not None]


def columns_of(group: pa.Table, column: str) -> dict[str, list[Any]]:
    """The fields of a column, where a row has it."""
    found = group[column].combine_chunks()
    names = [each.name for each in found.type]
    values = found.filter(found.is_valid()).flatten()
    return {name: of_name.to_pylist() for name, of_name in zip(names, values, strict=True)}


def in_common(points: Mapping[str, list[Any]], life: Life) -> list[dict[str, Any]]:
    """What a client has in common with others, as rows of `KEY`; nothing if it is gone.

    A client may have several brokers. Of what it has told in several ways, the last one by its text counts.
    """
    if any(points["terminating"]):
        return []
    libraries = [" ".join(part for part in each[1:3] if part is not None) for each in life.whos]
    single = {
        "group": points["group_id"],
        "gateway": points["gateway"],
        "principal": points["principal"],
        "address": points["client_address"],
        "library": libraries,
    }
    keys = [(0, BROKER, each) for each in sorted(set(filter(None, points["node_id"])))]
    for place, (key, values) in enumerate(single.items(), 1):
        keys += [(place, key, value) for value in (max(filter(None, values), default=None),) if value]
    return [dict(zip(("place", "key", "value"), each, strict=True)) for each in keys]
