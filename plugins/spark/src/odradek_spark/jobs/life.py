"""What one client has told: its points in the order of time, by metric, and the pushes that brought them.

Times are microseconds since 1970, as in the tables, or milliseconds where a name says so.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final

from odradek.findings.incidents import LOST
from odradek.findings.troubles import THROTTLED

CLIENT: Final = (
    *("client_id", "software_name", "software_version", "principal", "client_address", "client_rack"),
    *("group_id",),
)
"""Columns about the client of an episode."""
OF_PUSH: Final = CLIENT[:5]
"""Those of them that a push has; the others are labels of its points."""
INSTANCE: Final = "client_instance_id"
Who = tuple[str | None, ...]
"""The values of `CLIENT`."""
DELTA, CUMULATIVE = 1, 2
GAUGE = 1
US_PER_MS: Final = 1000
COUNTED_FROM_MS: Final = 10_000
"""What a counter has counted before is no increase: it is in the first pushes of a client."""
MUTED_MS, MUTED_INTERVALS = 900_000, 3
"""A client that was throttled at its last push is not lost for so long: its quota holds back its pushes."""
LIMITS: Final = {each.metric: each.threshold for each in THROTTLED}
PLACE: Final = ("ts", "src_partition", "src_offset")
PUSH: Final = ("recv_ts", "first_ts", "push_interval_ms", "terminating")
VALUE: Final = (
    *("name", "attrs", "value", "temporality", "kind", "client_ts", "start_ts", "topic", "node_id"),
)
OF_POINT: Final = (*PLACE, *PUSH, *VALUE, *CLIENT)
"""The columns of points."""
Columns = Mapping[str, Sequence[Any]]
TIMES: Final = ("ts", "recv_ts", "first_ts", "client_ts", "start_ts")
LABELS_KEPT: Final = 4096


@dataclass(slots=True, eq=False)
class Push:
    """A push of the client, or what several pushes with the same time have told."""

    recv_ts: int
    first_ts: int
    """Of the first push of the instance."""
    interval_ms: int
    terminating: bool
    throttle_ms: int = 0
    """How long no push may come after it, since the client is throttled."""

    @property
    def is_begin(self) -> bool:
        """Whether a counter may tell in it what it has counted before the client was seen."""
        return self.age_ms < COUNTED_FROM_MS

    @property
    def age_ms(self) -> int:
        return ms(self.recv_ts) - ms(self.first_ts)


@dataclass(slots=True, eq=False)
class Point:
    """A row of the table ``points`` with a number as value."""

    push: Push
    who: Who
    ts: int
    step: float
    """The increase of a sum since the point before; the value of anything else."""
    name: str
    attrs: str | None
    value: float
    temporality: int | None
    kind: int | None
    client_ts: int | None
    start_ts: int | None
    topic: str | None
    node_id: str | None


class Life:
    """The points of one client instance that have a number as value.

    Args:
        columns: The values of `OF_POINT`.
    """

    def __init__(self, columns: Columns) -> None:
        self.points: defaultdict[str, list[Point]] = defaultdict(list)
        """By metric, in the order of time."""
        self.is_lost = False
        """Whether a host has seen it die."""
        same: dict[Who, Who] = {}
        pushes: dict[tuple[int, ...], Push] = {}
        before: dict[tuple[str, str | None], float] = {}
        rows = zip(*(rows_of(columns, names) for names in (PLACE, PUSH, VALUE, CLIENT)), strict=True)
        for (ts, *record), of_push, of_point, who in sorted(rows, key=itemgetter(0)):
            name, attrs, value, temporality, *_ = of_point
            if value is None or value != value:
                continue
            push = pushes.setdefault(tuple(record), Push(*of_push))
            step = value
            if temporality == CUMULATIVE:
                is_first = push.recv_ts == push.first_ts
                step = increase_since(before.get((name, attrs)), value, is_first=is_first)
            before[name, attrs] = value
            self.points[name].append(Point(push, same.setdefault(who, who), ts, step, *of_point))
            if name in LIMITS and exceeds(step, LIMITS[name]):
                push.throttle_ms = max(MUTED_MS, MUTED_INTERVALS * push.interval_ms)
            self.is_lost |= name == LOST and exceeds(step, 0.0)
        self.pushes: Sequence[Push] = list(pushes.values())
        self.whos: Sequence[Who] = list(same)

    def labelled(self, name: str, labels: Mapping[str, str]) -> list[Point]:
        """The points of a metric that have these labels."""
        found = self.points.get(name, [])
        if not labels:
            return found
        return [each for each in found if labels.items() <= labels_of(each.attrs).items()]


def rows_of(columns: Columns, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    return zip(*(columns[name] for name in names), strict=True)


def increase_since(before: float | None, value: float, *, is_first: bool) -> float:
    """The step of a cumulative sum. Without a value before, all of it is new if the client is."""
    if before is None:
        return value if is_first else 0.0
    return value if value < before else value - before


def ms(ts: int) -> int:
    return ts // US_PER_MS


def exceeds(value: float, limit: float) -> bool:
    """Whether a value is above a limit. What is no number, as the difference of two infinite totals, is."""
    return not value <= limit


def largest(values: Iterable[float]) -> float:
    """As `max`; what is no number is larger than all that is."""
    return max(values, key=rank)


def smallest(values: Iterable[float]) -> float:
    """As `min`; what is no number is larger than all that is."""
    return min(values, key=rank)


def rank(value: float) -> tuple[bool, float]:
    return value != value, value


@lru_cache(LABELS_KEPT)
def labels_of(attrs: str | None) -> Mapping[str, str]:
    found = json.loads(attrs or "{}", parse_int=str, parse_float=str)
    return {
        name: value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
        for name, value in found.items()
        if value is not None
    }
