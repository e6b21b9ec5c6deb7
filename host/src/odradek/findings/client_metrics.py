"""The reference of the metrics of Kafka clients: kind, unit, labels, software, aggregate and HELP of each.

The data is ``client_metrics.toml``, which is read on first use. HELP texts, budgets for series, dashboards
and alerts come from it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from odradek.findings.incidents import OBSERVED
from odradek.findings.troubles import JAVA

PREFIX: Final = "org.apache.kafka."
ADMIN: Final = "admin.client"
DATA: Final = Path(__file__).with_suffix(".toml")
MADE_BY: Final = "odradek-prometheus"
"""The software of metrics that no client sends."""
SEEN_BY: Final = "odradek"
"""The software of metrics that a host or a gateway makes of what it sees."""
UNKNOWN_AGGREGATE: Final = "max"
"""The aggregate of gauges that are not in the reference. Sums are always added."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientMetric:
    """One metric of a client."""

    name: str
    """The full name in OTLP."""
    kind: Literal["gauge", "sum"]
    """A sum is monotonic."""
    unit: str
    """The UCUM unit of the values, which clients do not send: ``ms``, ``By``, ``1`` for a share."""
    levels: tuple[frozenset[str], ...]
    """The label sets of its data points. With more than one, a sum over all series counts everything twice,
    once by each level."""
    software: frozenset[str]
    """The client libraries that send it; a binding of librdkafka has another ``client_software_name``."""
    standard: bool
    """Whether it is a standard metric of KIP-714."""
    rare: bool
    """Whether it is usually no number, so that Prometheus has no series of it."""
    aggregate: Literal["sum", "max", "min", "mean"]
    """How the values of several clients or partitions become one."""
    help: str
    """One sentence."""


@cache
def client_metrics() -> Mapping[str, ClientMetric]:
    """Return all metrics of the reference by their full names."""
    table = tomllib.loads(DATA.read_text(encoding="utf-8"))
    found = [each for row in table["metrics"] for each in of_clients(row)]
    found += [metric(row, OBSERVED + row["name"], frozenset({SEEN_BY})) for row in table["observed"]]
    found += [metric(row, row["name"], frozenset({MADE_BY})) for row in table["made"]]
    return MappingProxyType({each.name: each for each in found})


def of_clients(row: dict[str, Any]) -> Iterator[ClientMetric]:
    """The metric of each role that has it."""
    also = frozenset(row.get("also", ()))
    for role in row.get("of", ("",)):
        has_standard = role != ADMIN
        software = also | {JAVA} if has_standard else frozenset({JAVA})
        name = ".".join(filter(None, (role, row["name"])))
        yield metric(row, PREFIX + name, software, standard=has_standard and row.get("standard", False))


def metric(
    row: dict[str, Any], name: str, software: frozenset[str], *, standard: bool = False
) -> ClientMetric:
    return ClientMetric(
        name=name,
        kind=row["kind"],
        unit=row["unit"],
        levels=tuple(frozenset(level) for level in row.get("levels", [[]])),
        software=software,
        standard=standard,
        rare=row.get("rare", False),
        aggregate=row["aggregate"],
        help=row["help"],
    )
