"""The origins of the series: apps, principals, software, metrics and labels, the largest first.

Only counts are read, never the series. While another thread adds to them, call only `usages`, and `top` for
apps, principals and software.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from odradek.temporality.budgets.folding import Folding
from odradek.temporality.budgets.policy import Budget
from odradek.temporality.budgets.series_counts import LabelCount, MetricCount, SeriesCount

BY: Final = ("app", "principal", "software", "metric", "label")


class Share(NamedTuple):
    """The live series of one app, principal, software, metric or label."""

    name: str
    principal: str
    """Of an app; empty for the others."""
    series: int
    share: float
    """Of all live series, 0 to 1."""
    new_per_hour: int
    clients: int
    """Live instances of an app, principal or software; 0 for metrics and labels."""
    label: str
    """Of a metric, the label with most values."""
    values: int
    """Of this label, or of the label itself in the metric where it has most."""
    example: str
    """Of clients the newest client id, of a metric the labels of its newest series, of a label a value."""


class Usage(NamedTuple):
    """The use of a budget: the one of its kind that is closest to its limit."""

    budget: str
    scope: str
    limit: int
    series: int

    @property
    def ratio(self) -> float:
        """1 if it is used up."""
        return self.series / self.limit


def top(foldings: Sequence[Folding], by: str, most: int, now_ms: int) -> list[Share]:
    """The largest ones.

    Args:
        foldings: The engines of a destination. Each client is in one of them.
        by: One of `BY`.
        most: Limit of the rows.
        now_ms: Epoch milliseconds.
    """
    total = max(1, series_of(foldings))
    found = [(each, count) for folding in foldings for each, count in counts(folding, by)]
    if len(foldings) > 1:
        found = merged(found)
    largest = heapq.nlargest(most, found, key=lambda each: each[1].series)
    return [share_of(names, count, total, now_ms) for names, count in largest]


def series_of(foldings: Sequence[Folding]) -> int:
    """All live series."""
    return sum([folding.series.series.series for folding in foldings])


def counts(folding: Folding, by: str) -> list[tuple[tuple[str, str], SeriesCount]]:
    """The counts of one engine, by principal and name."""
    series = folding.series
    if by == "app":
        return list(series.apps.items())
    tables: dict[str, dict[str, Any]] = {
        "principal": series.principals,
        "software": series.software,
        "metric": series.metrics,
        "label": series.labels() if by == "label" else {},
    }
    return [(("", name), count) for name, count in list(tables[by].items())]


def merged(found: Sequence[tuple[tuple[str, str], SeriesCount]]) -> list[tuple[tuple[str, str], SeriesCount]]:
    """The counts of several engines together. Details are those of the largest."""
    largest: dict[tuple[str, str], SeriesCount] = {}
    totals: Counter[tuple[str, str]] = Counter()
    for names, count in found:
        totals[names] += count.series
        if names not in largest or largest[names].series < count.series:
            largest[names] = count
    return [(names, Sum(totals[names], count)) for names, count in largest.items()]


class Sum(SeriesCount):
    """A count of several engines, with the details of one."""

    def __init__(self, series: int, details: SeriesCount) -> None:
        super().__init__(series=series, clients=details.clients, example=details.example)
        self.details = details


def share_of(names: tuple[str, str], count: SeriesCount, total: int, now_ms: int) -> Share:
    """One row."""
    details = count.details if isinstance(count, Sum) else count
    label, values, example = "", 0, details.example
    if isinstance(details, MetricCount):
        label, values = details.widest_label()
        example = ",".join([f"{name}={value}" for name, value in details.latest])
    elif isinstance(details, LabelCount):
        values = len(details.values)
        example = next(iter(details.values), "")
    return Share(
        name=names[1],
        principal=names[0],
        series=count.series,
        share=count.series / total,
        new_per_hour=details.new_per_hour(now_ms),
        clients=count.clients,
        label=label,
        values=values,
        example=example,
    )


def usages(foldings: Sequence[Folding]) -> Iterator[Usage]:
    """The use of the budgets of all, of a principal, and of an app. Those without a limit are left out."""
    fullest: dict[str, Budget] = {}
    for folding in foldings:
        for budget in list(folding.members.budgets.values()):
            kind = budget.key[0]
            known = fullest.get(kind)
            if budget.limit and (known is None or known.ratio < budget.ratio):
                fullest[kind] = budget
    for kind in ("all", "principal", "app"):
        if kind in fullest:
            budget = fullest[kind]
            yield Usage(kind, "/".join(budget.key[1:]), budget.limit, budget.count.series)


def report(foldings: Sequence[Folding], by: str, most: int, now_ms: int) -> dict[str, object]:
    """Series, budgets and the largest ones, for JSON."""
    folded: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    for folding in foldings:
        folded.update(folding.policy.counts.folded)
        refused.update(folding.policy.counts.refused)
    return {
        "series": series_of(foldings),
        "clients": sum([folding.series.series.clients for folding in foldings]),
        "budgets": [{**each._asdict(), "ratio": each.ratio} for each in usages(foldings)],
        "folded": dict(folded),
        "refused": dict(refused),
        "by": by,
        "top": [each._asdict() for each in top(foldings, by, most, now_ms)],
    }
