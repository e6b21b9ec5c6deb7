"""Panels of dashboards, as data and as Grafana's JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from contrib.grafana.promql import NAME, metrics_in, software_of

from odradek.findings.client_metrics import MADE_BY, PREFIX, SEEN_BY
from odradek.findings.presets import PRESETS, presets_for
from odradek.findings.troubles import JAVA, LIBRDKAFKA

DATA_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}
GRAFANA_UNITS: Final = {
    "1": "percentunit",
    "ms": "ms",
    "ns": "ns",
    "s": "s",
    "By": "bytes",
    "By/s": "Bps",
    "1/s": "cps",
    "1/min": "cpm",
    "1/h": "short",
}
"""Of UCUM units; those in braces are counts of things."""
WIDTH: Final = 24
TO_CLIENT: Final = {
    "title": "${__field.labels.client_id}",
    "url": "/d/odradek-client?var-client_id=${__field.labels.client_id}"
    "&var-client_instance_id=${__field.labels.client_instance_id}&${__url_time_range}",
}
"""A line leads to the dashboard of its client."""
LOCAL_CONSOLE: Final = "http://127.0.0.1:9642"
"""The documentation starts the console there."""
MATCHERS: Final = r"(?:\{[^}]*\})?"
SELECTED: Final = re.compile(NAME.pattern + MATCHERS)
EVERYTHING: Final = re.compile(r"\b(?:org_apache_kafka|kafka|odradek)_[a-z0-9_]+" + MATCHERS)
CLUSTER_FILTER: Final = 'cluster_name=~"$cluster"'


@dataclass(frozen=True, slots=True)
class Query:
    """A line, or several, of a panel."""

    expr: str
    legend: str = ""

    @property
    def of_cluster(self) -> str:
        """The expression for the chosen clusters: one Prometheus may have several."""
        return filtered(self.expr, CLUSTER_FILTER, EVERYTHING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One panel."""

    title: str
    queries: Sequence[Query]
    unit: str
    """UCUM."""
    description: str = ""
    empty: str = ""
    """The text instead of an empty panel; by default the preset that asks for it, and who lacks it."""
    kind: Literal["timeseries", "table", "stat"] = "timeseries"
    limit: float | None = None
    width: int = 8
    height: int = 8

    @property
    def missing(self) -> list[str]:
        """The software that does not send what the panel shows."""
        found = [
            software_of(query.expr)
            for query in self.queries
            if any(metric.software.isdisjoint({MADE_BY, SEEN_BY}) for metric in metrics_in(query.expr))
        ]
        return sorted({JAVA, LIBRDKAFKA}.difference(*found)) if found else []

    @property
    def presets(self) -> list[str]:
        """The presets that ask for what the panel shows; none if clients need not be asked."""
        names = {metric.name for query in self.queries for metric in metrics_in(query.expr)}
        asked = {name for name in names if name.startswith(PREFIX)}
        return presets_for(asked) if asked else []

    @property
    def is_of_incidents(self) -> bool:
        """Whether only hosts and gateways tell what the panel shows, when it happens."""
        found = [metric for query in self.queries for metric in metrics_in(query.expr)]
        return bool(found) and all(SEEN_BY in metric.software for metric in found)

    @property
    def no_value(self) -> str:
        """The text of the panel if the queries return nothing."""
        if self.empty:
            return self.empty
        if self.is_of_incidents:
            return "nothing of this kind has happened"
        if self.presets:
            other = f", or not sent by {' and '.join(self.missing)}" if self.missing else ""
            return f"not asked for (preset {', '.join(self.presets)}){other}"
        is_of_clients = any(metrics_in(query.expr) for query in self.queries)
        return f"no {'client has sent' if is_of_clients else 'host reports'} this"


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below a heading."""

    title: str
    panels: Sequence[Panel]


def needs(presets: Iterable[str]) -> str:
    """The presets that must be in force, in one sentence; empty if none must."""
    found = sorted({*presets}, key=list(PRESETS).index)
    return f"Needs subscriptions with these presets: {', '.join(found)}." if found else ""


def filtered(expression: str, matchers: str, selected: re.Pattern[str] = SELECTED) -> str:
    """Add matchers to each selector of client metrics, or of others."""

    def one(found: re.Match[str]) -> str:
        name, _, rest = found[0].partition("{")
        own = rest.removesuffix("}")
        return f"{name}{{{','.join(filter(None, (own, matchers)))}}}"

    return selected.sub(one, expression)


def grafana_unit(unit: str) -> str:
    return "short" if unit.startswith("{") else GRAFANA_UNITS[unit]


def as_json(panel: Panel, number: int, x: int, y: int) -> dict[str, Any]:
    """A panel in Grafana's JSON, at a place in the grid."""
    is_table = panel.kind == "table"
    targets = [
        {
            "datasource": DATA_SOURCE,
            "expr": query.of_cluster,
            "legendFormat": query.legend or "__auto",
            "refId": chr(ord("A") + place),
            "instant": is_table,
            "range": not is_table,
            "format": "table" if is_table else "time_series",
        }
        for place, query in enumerate(panel.queries)
    ]
    steps: list[dict[str, Any]] = [{"color": "text" if panel.kind == "stat" else "green", "value": None}]
    if panel.limit is not None:
        steps.append({"color": "red", "value": panel.limit})
    custom: dict[str, Any] = {}
    if panel.kind == "timeseries":
        custom = {"lineWidth": 1, "fillOpacity": 5, "spanNulls": 180_000, "showPoints": "auto"}
        custom["thresholdsStyle"] = {"mode": "line" if panel.limit is not None else "off"}
    found: dict[str, Any] = {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": " ".join(filter(None, (panel.description, needs(panel.presets)))),
        "datasource": DATA_SOURCE,
        "gridPos": {"h": panel.height, "w": panel.width, "x": x, "y": y},
        "targets": targets,
        "fieldConfig": {
            "defaults": {
                "unit": grafana_unit(panel.unit),
                "noValue": panel.no_value,
                "links": [TO_CLIENT]
                if any("{{client_id}}" in query.legend for query in panel.queries)
                else [],
                "custom": custom,
                "thresholds": {"mode": "absolute", "steps": steps},
            },
            "overrides": [],
        },
        "options": OPTIONS[panel.kind],
    }
    if is_table:
        found["transformations"] = [
            {"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True}}}
        ]
    return found


OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "timeseries": {
        "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
        "tooltip": {"mode": "multi", "sort": "desc"},
    },
    "table": {"showHeader": True},
    "stat": {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "area"},
}


def placed(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """All panels below each other, from left to right in each row."""
    found: list[dict[str, Any]] = []
    y = 0
    for row in rows:
        place = {"h": 1, "w": WIDTH, "x": 0, "y": y}
        heading = {"id": len(found) + 1, "type": "row", "title": row.title, "collapsed": False}
        found.append(heading | {"gridPos": place, "panels": []})
        y += 1
        x = height = 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, height = 0, y + height, 0
            found.append(as_json(panel, len(found) + 1, x, y))
            x, height = x + panel.width, max(height, panel.height)
        y += height
    return found
