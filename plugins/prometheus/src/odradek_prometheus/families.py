"""Families: the metrics as Prometheus knows them, each with one name and one type."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.findings.client_metrics import client_metrics
from odradek.temporality import Kind
from odradek_prometheus.metric_names import TOKENS, escaped_name, unit_of

log = logging.getLogger(__name__)


class FamilyType(StrEnum):
    """The types that clients' metrics have."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    EXPONENTIAL = "exponential"
    """A native histogram."""


TYPES: Final[Mapping[int, FamilyType]] = {
    Kind.COUNTER: FamilyType.COUNTER,
    Kind.SUM: FamilyType.GAUGE,
    Kind.GAUGE: FamilyType.GAUGE,
    Kind.HISTOGRAM: FamilyType.HISTOGRAM,
    Kind.EXPONENTIAL_HISTOGRAM: FamilyType.EXPONENTIAL,
}


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """All series of one name. Families are equal only to themselves."""

    name: str
    """The name of its samples, with unit and ``_total``; of a histogram without ``_bucket``."""
    utf8_name: str
    """The name that the client gave it, but ``?`` for NUL: for it, Prometheus drops the whole page."""
    type: FamilyType
    unit: str
    """A suffix of the name; empty if the metric has none."""
    help: str

    @property
    def base(self) -> str:
        """The name in OpenMetrics, which adds ``_total`` to samples."""
        return self.name.removesuffix("_total") if self.type is FamilyType.COUNTER else self.name

    def claims(self) -> tuple[str, ...]:
        """The names that no other family may have."""
        if self.type is FamilyType.COUNTER:
            return (self.name, self.base)
        if self.type is FamilyType.GAUGE:
            return (self.name,)
        return (self.name, f"{self.name}_bucket", f"{self.name}_count", f"{self.name}_sum")


RESERVED: Final = frozenset(
    (
        "kafka_client_info",
        "odradek_client_last_push_age_seconds",
        "odradek_client_push_interval_seconds",
        "odradek_client_terminated",
        "odradek_exposition_hidden_series",
        "odradek_exposition_renamed_labels",
    )
)
"""The names of families that no client sends."""
MAX_LOGGED: Final = 100
"""Limit of names that are logged, of each kind."""
LOGGED_CHARS: Final = 200
MAX_DESCRIPTION_CHARS: Final = 200
MAX_DESCRIBED: Final = 10_000


class Families:
    """The families of all metrics that were seen. The first metric with a name keeps it."""

    def __init__(self, prefix: str = "") -> None:
        """Begin without families.

        Args:
            prefix: Put before each name.
        """
        self.prefix = prefix
        self.by_metric: dict[tuple[str, str, int], Family | None] = {}
        self.owners: dict[str, Family] = {}
        self.logged: set[str] = set()
        self.descriptions: dict[str, str] = {}
        """Descriptions by clients of metrics that are not in the reference; empty if a client gives none."""

    def describe(self, metrics: Iterable[str], data: bytes) -> None:
        """Take the descriptions of metrics from a push, where the reference has none."""
        unknown = {each for each in metrics if each not in client_metrics()} - self.descriptions.keys()
        if not unknown:
            return
        if len(self.descriptions) > MAX_DESCRIBED:
            self.descriptions.clear()
        self.descriptions |= dict.fromkeys(unknown, "")
        for entry in MetricsData.FromString(data).resource_metrics:
            for metric in (metric for scope in entry.scope_metrics for metric in scope.metrics):
                if metric.name in unknown:
                    self.descriptions[metric.name] = metric.description[:MAX_DESCRIPTION_CHARS]

    def keep(self, used: Collection[Family]) -> None:
        """Forget all families but these."""
        self.by_metric = {key: each for key, each in self.by_metric.items() if each in used}
        self.owners = {claim: each for claim, each in self.owners.items() if each in used}

    def family(self, metric: str, unit: str, kind: int) -> Family | None:
        """The family of a metric; None if its name is empty, or another family has it."""
        key = (metric, unit, kind)
        if key not in self.by_metric:
            self.by_metric[key] = self.new_family(metric, unit, kind)
        return self.by_metric[key]

    def new_family(self, metric: str, unit: str, kind: int) -> Family | None:
        name = escaped_name(metric, unit, kind, self.prefix)
        if not TOKENS.search(metric):
            self.refuse(metric, name, "its name has no ASCII letter or digit")
            return None
        if name in RESERVED:
            self.refuse(metric, name, "the plugin has a metric of this name")
            return None
        family = Family(
            name,
            self.prefix + metric.replace("\0", "?"),
            TYPES[kind],
            unit_of(name, unit),
            help_of(metric, self.descriptions.get(metric, "")),
        )
        owners = {owner for claim in family.claims() if (owner := self.owners.get(claim)) is not None}
        if len(owners) == 1:
            (owner,) = owners
            if (owner.name, owner.type) == (family.name, family.type):
                return owner
        if owners:
            self.refuse(metric, name, "another metric has its name with another type")
            return None
        self.owners |= dict.fromkeys(family.claims(), family)
        return family

    def refuse(self, metric: str, name: str, reason: str) -> None:
        if metric not in self.logged and len(self.logged) < MAX_LOGGED:
            self.logged.add(metric)
            problem = f"metric is not shown to Prometheus: {reason}"
            log.warning(problem, extra={"metric": metric[:LOGGED_CHARS], "series": name[:LOGGED_CHARS]})


def own_family(name: str, unit: str = "", text: str = "") -> Family:
    """A gauge that no client sends, one of `RESERVED`."""
    return Family(name, name, FamilyType.GAUGE, unit_of(name, unit), text or help_of(name))


def help_of(metric: str, description: str = "") -> str:
    """The sentence of the reference of client metrics, else the description by a client."""
    known = client_metrics().get(metric)
    return known.help if known else description or f"{metric}, as the client names it."
