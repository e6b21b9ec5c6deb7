"""The tasks that judge clients: one pass over what each of them has told.

A group has the rows of one client instance: its points of the rules' metrics since the time to which a run
looks back, its last push, and its known episodes. A task holds one group at a time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import pyarrow as pa

from odradek.findings.troubles import SILENCE
from odradek_spark.jobs.causes import BROKER
from odradek_spark.jobs.islands import OPEN, Series, carried, episodes
from odradek_spark.jobs.judged import Sample, held, judged, of_silence
from odradek_spark.jobs.life import CLIENT, INSTANCE, OF_PUSH, Life
from odradek_spark.jobs.rules import Rule, silence_rules
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
"""The row of a client. ``keys`` has what it may share with others, and nothing if the client is gone."""
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
Samples = tuple[Rule, Series, list[Sample]]
Lives = Mapping[str, Sequence[tuple[int, int]]]
"""By group: the begin and the end of each client in milliseconds."""


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges clients by rules."""

    rules: Sequence[Rule]
    lives: Lives = field(default_factory=dict)
    now_ms: int = 0
    """The latest receive time in the tables."""

    def sampled(self, group: pa.Table) -> pa.Table:
        """The samples of a client, as rows of `SAMPLE`."""
        life, instance = Life(columns_of(group, POINT)), group[INSTANCE][0].as_py()
        rows = [
            sample_row(instance, rule, series, each)
            for rule, series, samples in self.samples(life)
            for each in samples
        ]
        return pa.Table.from_pylist(rows, SAMPLE)

    def found(self, group: pa.Table) -> pa.Table:
        """The episodes of a client, as a row of `FOUND`."""
        points = columns_of(group, POINT)
        life, known, lasts = Life(points), rows_of(group, KNOWN), rows_of(group, LAST)
        samples: defaultdict[Series, list[Sample]] = defaultdict(list)
        seen: dict[Series, int] = {}
        for each in known:
            series = each["rule"], each["name"], each["attrs"]
            seen[series] = max(each["last_ts"], seen.get(series, each["last_ts"]))
            if each["state"] == OPEN:
                samples[series].append(carried(each))
        for rule, series, told in chain(self.samples(life), self.silences(life, lasts)):
            since_ts = seen.get(series)
            told = held(rule, told, self.now_ms)
            samples[series] += (each for each in told if since_ts is None or each.ts > since_ts)
        row = {
            INSTANCE: group[INSTANCE][0].as_py(),
            "keys": in_common(points),
            "episodes": list(chain.from_iterable(episodes(*each, self.now_ms) for each in samples.items())),
        }
        return pa.Table.from_pylist([row], FOUND)

    def samples(self, life: Life) -> Iterator[Samples]:
        for rule in self.rules:
            for attrs, values in series_of(life, rule).items():
                yield rule, (rule.id, rule.metric, attrs), list(judged(rule, values, self.changes))

    def silences(self, life: Life, lasts: Sequence[Mapping[str, Any]]) -> Iterator[Samples]:
        for rule in silence_rules(self.rules):
            for last in lasts:
                yield rule, (rule.id, SILENCE, None), [of_silence(last, life, rule, self.now_ms)]

    def changes(self, group: str | None, now_ms: int, window_ms: float) -> int:
        """The clients of a group that live now and did not before the window, or the other way round."""
        lives, before_ms = self.lives.get(group or "", ()), now_ms - window_ms
        return sum((begin <= now_ms <= end) != (begin <= before_ms <= end) for begin, end in lives)


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


def rows_of(group: pa.Table, column: str) -> list[dict[str, Any]]:
    """The rows of a group that have a column; it is missing if no rule asks for it."""
    found = group[column].to_pylist() if column in group.column_names else []
    return [each for each in found if each is not None]


def columns_of(group: pa.Table, column: str) -> dict[str, list[Any]]:
    """The fields of a column, where a row has it."""
    found = group[column].combine_chunks()
    names = [each.name for each in found.type]
    values = found.filter(found.is_valid()).flatten()
    return {name: of_name.to_pylist() for name, of_name in zip(names, values, strict=True)}


def in_common(points: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    """What a client has in common with others, as rows of `KEY`; nothing if it is gone.

    A client may have several brokers. Of what it has told in several ways, the last one by its text counts.
    """
    if any(points["terminating"]):
        return []
    software = set(zip(points["software_name"], points["software_version"], strict=True))
    single = {
        "group": points["group_id"],
        "gateway": points["gateway"],
        "principal": points["principal"],
        "address": points["client_address"],
        "library": [" ".join(part for part in each if part is not None) for each in software],
    }
    keys = [(0, BROKER, each) for each in sorted(set(filter(None, points["node_id"])))]
    for place, (key, values) in enumerate(single.items(), 1):
        keys += [(place, key, value) for value in (max(filter(None, values), default=None),) if value]
    return [dict(zip(("place", "key", "value"), each, strict=True)) for each in keys]
