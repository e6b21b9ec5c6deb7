"""Parts of PromQL expressions about client metrics: names, selectors, windows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from odradek.findings.client_metrics import ClientMetric, client_metrics
from odradek.temporality import Kind
from odradek_prometheus.metric_names import escaped_name

INTERVAL_S: Final = 60
"""The push interval of the files in this repository."""
PER_WINDOW: Final = 4
"""Push intervals in a window, at the least: pushes are up to 1.5 intervals apart, and one may be lost."""
LEAST_WINDOW_S: Final = 300
NAME: Final = re.compile(
    r"\b(?:org_apache_kafka|kafka_client|odradek_client(?!_(?:lag|position|fetch_age|library))|io_odradek_observed)"
    r"_[a-z_]+"
)
"""Metrics that clients send, or that are derived for them. Those of lag are others."""
IDENTITY: Final = (
    "client_id",
    "client_instance_id",
    "client_software_name",
    "client_software_version",
    "principal",
)
"""Labels that say which client instance a series is about."""


def series_name(metric: ClientMetric) -> str:
    """The name in Prometheus. Clients send no units, so the name has none."""
    return escaped_name(metric.name, "", Kind.COUNTER if metric.kind == "sum" else Kind.GAUGE)


def by_series_name() -> Mapping[str, ClientMetric]:
    """The metrics of the reference by their names in Prometheus."""
    return {series_name(metric): metric for metric in client_metrics().values()}


def has_two_levels(metric: ClientMetric) -> bool:
    """Whether the metric is reported for the client and again for each topic."""
    return len(metric.levels) > 1


def selector(name: str, *matchers: str, deepest: bool = False) -> str:
    """Select a metric by its OTLP name, at the level of the client or at the deepest one."""
    metric = client_metrics()[name]
    if has_two_levels(metric):
        matchers = (*matchers, 'topic!=""' if deepest else 'topic=""')
    return series_name(metric) + ("{" + ",".join(matchers) + "}" if matchers else "")


def window_s(interval_s: int, least_s: float = LEAST_WINDOW_S) -> int:
    """The window of a rate: at least four push intervals."""
    return int(max(least_s, PER_WINDOW * interval_s))


def duration(seconds: float) -> str:
    """Seconds as Prometheus writes them: ``10m``."""
    whole = int(seconds)
    for size, unit in ((3600, "h"), (60, "m")):
        if whole and whole % size == 0:
            return f"{whole // size}{unit}"
    return f"{whole}s"


def number(value: float) -> str:
    """A number without an exponent: ``5000``, ``0.01``."""
    return f"{value:.10f}".rstrip("0").rstrip(".")


def metrics_in(expression: str) -> list[ClientMetric]:
    """The client metrics of an expression.

    Raises:
        KeyError: A name is not in the reference.
    """
    known = by_series_name()
    return [known[name] for name in sorted(set(NAME.findall(expression)))]


def software_of(expression: str) -> frozenset[str]:
    """The client software with all metrics of an expression. Facts about instances exist for all software.

    Software without what is excluded (``unless``) can have the rest.
    """
    asked = metrics_in(expression.partition("\nunless ")[0])
    found = [metric.software for metric in asked if metric.name.startswith("org.")]
    return frozenset.intersection(*found) if found else frozenset()
