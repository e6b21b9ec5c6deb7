"""One standard metric, and what a client made of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from odradek.testing.conformance.payload_rules import asked_for, hint
from odradek.testing.conformance.standard_metrics import PREFIX, ROLES, STANDARD_METRICS, StandardMetric
from odradek.testing.data_points import DataPoint


class State(StrEnum):
    SENT = "sent"
    WRONG = "wrong"
    MISSING = "missing"
    NOT_ASKED = "not asked"
    """No subscription wanted it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """What was sent under a standard name."""

    name: str
    """With ``org.apache.kafka.``."""
    state: State
    kind: str | None = None
    """``gauge``, ``sum`` or what else came; None if nothing did."""
    unit: str = ""
    """As it was sent; Kafka's clients send none."""
    temporality: str | None = None
    """``delta`` or ``cumulative``, of a sum."""
    labels: Sequence[str] = ()
    """Of the data points."""
    problems: Sequence[str] = ()


def roles(names: Iterable[str]) -> list[str]:
    """What a client is: ``producer``, ``consumer``, ``admin``."""
    known = list(names)
    return [role for role, prefix in ROLES.items() if any(name.startswith(prefix) for name in known)]


def metric_rows(points: Sequence[DataPoint], prefixes: Sequence[str] | None) -> list[MetricRow]:
    """All standard metrics of what the client is.

    Args:
        points: Everything that it pushed.
        prefixes: What it was asked for; None where that is not known.
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
    """What is not as the KIP has it."""
    if point.kind != standard.kind:
        yield f"a {point.kind}, should be a {standard.kind}"
    elif point.kind == "sum":
        if not point.delta:
            yield "cumulative, though the host asks for delta"
        if not point.monotonic:
            yield "a sum that is not monotonic"
    if point.unit not in ("", standard.unit):
        yield f"unit {point.unit}, should be {standard.unit or 'none'}"
    for label in standard.labels - point.attributes.keys():
        near = [own for own in point.attributes if label in hint(own)]
        yield f"label {near[0]}, should be {label}" if near else f"no label {label}"
