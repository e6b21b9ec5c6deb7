"""The conformance report: how a client implements KIP-714."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from odradek.testing.conformance.exchange import ClientInstance, client_instances
from odradek.testing.conformance.finding import Observation, Verdict, unseen, worst
from odradek.testing.conformance.metric_row import MetricRow, State, metric_rows, roles
from odradek.testing.conformance.rules import RULES, Rule
from odradek.wire.error_code import ErrorCode
from odradek.wire.uuid_text import uuid_text

NOT_IN_TOPIC = "the topic contains only accepted pushes"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule and its verdict."""

    rule: str
    expected: str
    verdict: Verdict
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """The report on one client id, with all its client instances."""

    client_id: str | None
    client_instance_ids: Sequence[str]
    """The ids as Kafka prints them."""
    software: str
    """Name and version of the client software, from ApiVersions."""
    roles: Sequence[str]
    source: str
    """``requests``, or ``topic`` for accepted pushes only."""
    handshakes: int
    pushes: int
    refused: int
    """Number of refused pushes."""
    metrics_sent: int
    """Number of different metric names, standard and others."""
    rules: Sequence[RuleRow]
    metrics: Sequence[MetricRow]
    """The standard metrics of the client's roles."""

    @property
    def wrong(self) -> list[str]:
        """All deviations from KIP-714, one line each. Missing metrics are not included."""
        rules = [f"{row.rule}: {row.seen}" for row in self.rules if row.verdict is Verdict.WRONG]
        return rules + [f"{row.name}: {'; '.join(row.problems)}" for row in self.metrics if row.problems]

    @property
    def missing(self) -> list[str]:
        """The standard metrics that were requested but not sent."""
        return [row.name for row in self.metrics if row.state is State.MISSING]

    def as_json(self) -> dict[str, Any]:
        """The report as a dict for JSON."""
        return {**asdict(self), "wrong": self.wrong, "missing": self.missing}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """Yield the lines of the report as text."""
        yield f"client {self.client_id} ({self.software}), {' and '.join(self.roles) or 'nothing pushed'}"
        yield f"client instances: {' '.join(self.client_instance_ids)}"
        handshakes = f"{self.handshakes} handshakes, " if self.source == "requests" else ""
        refused = f", {self.refused} of them refused" if self.refused else ""
        counts = f"{handshakes}{self.pushes} pushes{refused}, {self.metrics_sent} metrics"
        yield f"seen in the {self.source}: {counts}"
        yield ""
        for rule in self.rules:
            yield f"{rule.verdict:<8}{rule.rule}: {rule.seen}"
        yield ""
        sent = sum(row.state in (State.SENT, State.WRONG) for row in self.metrics)
        yield f"standard metrics: {sent} of {len(self.metrics)}"
        for row in self.metrics:
            yield f"{row.state:<10}{row.name}{described(row)}"


def described(row: MetricRow) -> str:
    """The details of a metric, as the end of its line."""
    labels = f"labels {' '.join(row.labels)}" if row.labels else None
    parts = [row.kind, row.temporality, row.unit or None, labels, *row.problems]
    text = ", ".join(part for part in parts if part)
    return f": {text}" if text else ""


def conformance_report(client_id: str | None, seen: Observation) -> ConformanceReport:
    """Create the report from the exchanges of a client.

    Raises:
        ValueError: There are no exchanges.
    """
    if not seen.exchanges:
        raise ValueError(f"client {client_id} has neither requested a subscription nor pushed")
    instances = client_instances(seen.exchanges)
    pushes = [push for instance in instances for push in instance.pushes]
    points = [point for instance in instances for push in instance.accepted for point in push.points()]
    connection = seen.exchanges[-1].context.connection
    names = {point.metric for point in points}
    return ConformanceReport(
        client_id=client_id,
        client_instance_ids=[uuid_text(instance.client_instance_id) for instance in instances],
        software=f"{connection.client_software_name} {connection.client_software_version}",
        roles=roles(names),
        source="requests" if seen.complete else "topic",
        handshakes=sum(len(instance.handshakes) for instance in instances),
        pushes=len(pushes),
        refused=sum(push.error is not ErrorCode.NONE for push in pushes),
        metrics_sent=len(names),
        rules=[rule_row(rule, instances, seen) for rule in RULES],
        metrics=metric_rows(points, prefixes(instances)),
    )


def rule_row(rule: Rule, instances: Sequence[ClientInstance], seen: Observation) -> RuleRow:
    """The worst finding of a rule among the client instances."""
    if not (seen.complete or rule.in_topic):
        finding = unseen(NOT_IN_TOPIC)
    else:
        looks = [rule.look(instance, seen) for instance in instances] or [
            unseen("no client instance was seen")
        ]
        finding = worst(looks)
    return RuleRow(rule=rule.name, expected=rule.expected, verdict=finding.verdict, seen=finding.seen)


def prefixes(instances: Sequence[ClientInstance]) -> list[str] | None:
    """The prefixes requested in all handshakes; None if no handshake was seen."""
    handshakes = [each for instance in instances for each in instance.handshakes]
    wanted = [each.response.requested_metrics for each in handshakes if each.error is ErrorCode.NONE]
    return sorted({prefix for requested in wanted for prefix in requested}) if wanted else None
