"""Plugins that break the contract, and the rules they break; a busy machine breaks rules about time, too."""

from __future__ import annotations

from collections.abc import Callable

from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.testing.contracts import Kind, Outcome, Subject, rules_of, verdicts

MOST_RUNS = 4


class ClosedOnce:
    """Breaks the rule that an object may be closed twice; to be put before a class that keeps all rules."""

    closed = False

    def close(self) -> None:
        if self.closed:
            raise RuntimeError("closed")
        self.closed = True


def broken_rules(kind: Kind, subject: Callable[[], Subject]) -> list[str]:
    """The broken rules. If there are several, those that are broken in each of a few runs."""
    broken = list(rules_of(kind))
    for _ in range(MOST_RUNS):
        broken = [found.rule for found in verdicts(broken, subject()) if found.outcome is Outcome.FAILED]
        if len(broken) <= 1:
            break
    return [str(rule) for rule in broken]


def distinct(data: bytes) -> bool:
    """Whether no label of the first Resource is an attribute of the first gauge; also for garbage."""
    try:
        entry = MetricsData.FromString(data).resource_metrics[0]
        (point,) = entry.scope_metrics[0].metrics[0].gauge.data_points
    except (DecodeError, IndexError):
        return True
    labels = {each.key for each in entry.resource.attributes}
    return labels.isdisjoint(each.key for each in point.attributes)
