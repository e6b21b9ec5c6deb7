"""The standard metrics of a client and how it sent them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from odradek.findings.client_metrics import PREFIX
from odradek.testing.conformance.payload_rules import asked_for, hint
from odradek.testing.conformance.standard_metrics import ROLES, STANDARD_METRICS, StandardMetric
from odradek.testing.data_points import DataPoint


class State(StrEnum):
    SENT = "sent"
    WRONG = "wrong"
    MISSING = "missing"
    NOT_ASKED = "not asked"
    """No subscription requested it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """How a client sent one standard metric."""

    name: str
    """The full name, including ``org.apache.kafka.``."""
    state: State
    kind: str | None = None
    """``gauge``, ``sum`` or another kind; None if the metric was not sent."""
    unit: str = ""
    """The unit as sent; Kafka's clients send none."""
    temporality: str | None = None
    """``delta`` or ``cumulative``; None for a gauge."""
    labels: Sequence[str] = ()
    """Names of the labels of the data points."""
    problems: Sequence[str] = ()


def roles(names: Iterable[str]) -> list[str]:
    """The roles of a client, by the names of its metrics: ``producer``, ``consumer``, ``admin``."""
    known = list(names)
    return [role for role, prefix in ROLES.items() if any(name.startswith(prefix) for name in known)]


def metric_rows(points: Sequence[DataPoint], prefixes: Sequence[str] | None) -> list[MetricRow]:
    """Create a row for each standard metric of the client's roles.

    Args:
        points: All data points that the client pushed.
        prefixes: The requested prefixes; None if they are not known.
    """
    found: dict[str, list[DataPoint]] = {}
    for point in points:
        found.setdefault(point.metric, []).append(point)
    is_a = roles(found)
    return [
        metric_row(standard, found.get(PREFIX + standard.name, ()), prefixes)
        for standard in STANDARD_METRICS
        if standard.role in is_a
    ]


def metric_row(
    standard: StandardMetric, points: Sequence[DataPoint], prefixes: Sequence[str] | None
) -> MetricRow:
    name = PREFIX + standard.name
    if not points:
        asked = prefixes is None or asked_for(name, prefixes)
        return MetricRow(name=name, state=State.MISSING if asked else State.NOT_ASKED)
    problems = sorted({problem for point in points for problem in problems_of(standard, point)})
    first = points[0]
    return MetricRow(
        name=name,
        state=State.WRONG if problems else State.SENT,
        kind=first.kind,
        unit=first.unit,
        temporality=temporality(first) if first.kind != "gauge" else None,
        labels=sorted({label for point in points for label in point.attributes}),
        problems=problems,
    )


def temporality(point: DataPoint) -> str:
    return "delta" if point.delta else "cumulative"


def problems_of(standard: StandardMetric, point: DataPoint) -> Iterable[str]:
    """Yield the differences between a data point and the KIP."""
    if point.kind != standard.kind:
        yield f"a {point.kind}, should be a {standard.kind}"
    elif point.kind == "sum":
        if not point.delta:
            yield "cumulative, although the host requested delta"
        if not point.monotonic:
            yield "a sum that is not monotonic"
    if point.unit not in ("", standard.unit):
        yield f"unit {point.unit}, should be {standard.unit or 'none'}"
    for label in standard.labels - point.attributes.keys():
        near = [own for own in point.attributes if label in hint(own)]
        yield f"label {near[0]}, should be {label}" if near else f"no label {label}"
