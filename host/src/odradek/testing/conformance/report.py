"""The conformance report: what a client made of KIP-714."""

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

NOT_IN_TOPIC = "the topic has accepted pushes only"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRow:
    """A rule, and what was seen of it."""

    rule: str
    expected: str
    verdict: Verdict
    seen: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConformanceReport:
    """About one client id: all its client instances together."""

    client_id: str | None
    client_instance_ids: Sequence[str]
    """As Kafka prints them."""
    software: str
    """Name and version, as ApiVersions had them."""
    roles: Sequence[str]
    source: str
    """``requests``, or ``topic``: accepted pushes only."""
    handshakes: int
    pushes: int
    refused: int
    """Of the pushes."""
    metrics_sent: int
    """Different names, standard ones and others."""
    rules: Sequence[RuleRow]
    metrics: Sequence[MetricRow]
    """The standard ones of what the client is."""

    @property
    def wrong(self) -> list[str]:
        """Everything that is not as KIP-714 has it, a line each. Missing metrics are not among it."""
        rules = [f"{row.rule}: {row.seen}" for row in self.rules if row.verdict is Verdict.WRONG]
        return rules + [f"{row.name}: {'; '.join(row.problems)}" for row in self.metrics if row.problems]

    @property
    def missing(self) -> list[str]:
        """Standard metrics that were asked for and did not come."""
        return [row.name for row in self.metrics if row.state is State.MISSING]

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {**asdict(self), "wrong": self.wrong, "missing": self.missing}

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> Iterator[str]:
        """For people."""
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
    """How a metric was sent."""
    labels = f"labels {' '.join(row.labels)}" if row.labels else None
    parts = [row.kind, row.temporality, row.unit or None, labels, *row.problems]
    text = ", ".join(part for part in parts if part)
    return f": {text}" if text else ""


def conformance_report(client_id: str | None, seen: Observation) -> ConformanceReport:
    """What the exchanges of a client say.

    Raises:
        ValueError: There are none.
    """
    if not seen.exchanges:
        raise ValueError(f"client {client_id} has neither asked nor pushed")
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
    """The worst of what the instances did."""
    if not (seen.complete or rule.in_topic):
        finding = unseen(NOT_IN_TOPIC)
    else:
        looks = [rule.look(instance, seen) for instance in instances] or [unseen("nobody was there")]
        finding = worst(looks)
    return RuleRow(rule=rule.name, expected=rule.expected, verdict=finding.verdict, seen=finding.seen)


def prefixes(instances: Sequence[ClientInstance]) -> list[str] | None:
    """What the client was asked for, in all handshakes."""
    handshakes = [each for instance in instances for each in instance.handshakes]
    wanted = [each.response.requested_metrics for each in handshakes if each.error is ErrorCode.NONE]
    return sorted({prefix for requested in wanted for prefix in requested}) if wanted else None
