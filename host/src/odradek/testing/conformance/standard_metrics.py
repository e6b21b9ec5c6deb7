"""The standard metrics of KIP-714, which every client should be able to send.

The KIP defines metrics for producers and for consumers, but none for admin clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.findings.client_metrics import PREFIX, client_metrics
from odradek.plugin.context_labels import CLUSTER_NAME, CONTEXT_LABELS

ROLES: Final = {
    "producer": f"{PREFIX}producer.",
    "consumer": f"{PREFIX}consumer.",
    "admin": f"{PREFIX}admin.client.",
}
"""The prefix of the metric names of each role."""
RESOURCE_LABELS: Final = frozenset(
    {"client_rack", "group_id", "group_instance_id", "group_member_id", "transactional_id"}
)
"""Labels that a client sets on the Resource."""
HOST_LABELS: Final = frozenset((*CONTEXT_LABELS, CLUSTER_NAME))
"""Labels that the host sets on receipt."""


@dataclass(frozen=True, slots=True)
class StandardMetric:
    """One standard metric of the KIP."""

    name: str
    """The name without `PREFIX`."""
    kind: str
    """``gauge`` or ``sum``."""
    unit: str = ""
    """``ms``; empty for ratios and counts."""
    labels: frozenset[str] = frozenset()
    """Labels of each data point."""

    @property
    def role(self) -> str:
        return self.name.partition(".")[0]


STANDARD_METRICS: Final = tuple(
    StandardMetric(
        name=metric.name.removeprefix(PREFIX),
        kind=metric.kind,
        unit=metric.unit if metric.unit == "ms" else "",
        labels=metric.levels[0],
    )
    for metric in client_metrics().values()
    if metric.standard
)
