"""The dashboards: fleet, client, library versions, groups, host."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from contrib.grafana.alerts import Alert, alerts
from contrib.grafana.group_panels import GROUP_ROWS
from contrib.grafana.host_panels import HOST_ROWS
from contrib.grafana.panels import DATA_SOURCE, LOCAL_CONSOLE, Panel, Query, Row, filtered, needs, placed
from contrib.grafana.promql import duration, has_two_levels, metrics_in, selector, window_s
from contrib.grafana.runbook import PAGE

from odradek.findings.client_metrics import PREFIX, ClientMetric, client_metrics
from odradek.findings.concerns import CONCERNS, Chart, differing_words
from odradek.findings.troubles import CONSUMER, COORDINATOR, FETCH, LIBRDKAFKA, PRODUCER

STANDARD: Final = "Standard metrics: all client libraries"
JAVA_ONLY: Final = "Java clients only"
MOST: Final = 10
FLEET_FILTER: Final = 'client_software_name=~"$software",principal=~"$principal"'
CLIENT_FILTER: Final = 'client_instance_id=~"$client_instance_id"'
INFO: Final = "kafka_client_info"
EVERY_CLIENT: Final = '{__name__=~"org_apache_kafka_.+_connection_creation_total"}'
VERSION: Final = "client_software_name, client_software_version"


@dataclass(frozen=True, slots=True)
class Variable:
    """A choice at the top of a dashboard: values of a label."""

    name: str
    title: str
    label: str
    series: str = EVERY_CLIENT


@dataclass(frozen=True, slots=True)
class Dashboard:
    """One dashboard."""

    id: str
    title: str
    description: str
    rows: Sequence[Row]
    variables: Sequence[Variable] = ()
    page: str = "/"
    """The page of the console that shows the same, with variables."""


CLUSTER = Variable(
    "cluster", "Cluster", "cluster_name", '{__name__=~"odradek_up|odradek_group_members|kafka_client_info"}'
)
SOFTWARE = Variable("software", "Software", "client_software_name")
GROUP = Variable("group", "Group", "group", "odradek_group_members")
PRINCIPAL = Variable("principal", "Principal", "principal")


def is_for_all(panel: Panel) -> bool:
    return LIBRDKAFKA not in panel.missing


def two_rows(panels: Sequence[Panel]) -> list[Row]:
    """Panels that every library fills, and those that only Java clients fill."""
    return [
        Row(STANDARD, [each for each in panels if is_for_all(each)]),
        Row(JAVA_ONLY, [each for each in panels if not is_for_all(each)]),
    ]


# fleet


def legend_of(alert: Alert) -> str:
    of_points = {label for metric in metrics_in(alert.shown.value) for label in metric.levels[0]}
    who = ("client_id", *(label for label in alert.labels if label in of_points))
    return " ".join(template(label) for label in (who if "client_id" in alert.labels else alert.labels))


def template(label: str) -> str:
    return f"node {{{{{label}}}}}" if label == "node_id" else f"{{{{{label}}}}}"


def of_alert(alert: Alert) -> Panel:
    """The clients that are nearest to the threshold of an alert."""
    most = "bottomk" if alert.shown.low else "topk"
    return Panel(
        title=alert.question,
        queries=[Query(f"{most}({MOST}, {filtered(alert.shown.value, FLEET_FILTER)})", legend_of(alert))],
        unit=alert.shown.unit,
        limit=alert.shown.limit,
        description=f"Trouble: {alert.condition}. {alert.advice} Runbook: {PAGE}#{alert.id}",
    )


def added(metric: str, interval_s: int, *by: str) -> str:
    """The rate of a counter, of all clients."""
    rate = f"rate({filtered(selector(metric), FLEET_FILTER)}[{duration(window_s(interval_s))}])"
    return f"sum by ({', '.join(by)}) ({rate})" if by else f"sum({rate})"


def volumes(interval_s: int) -> Iterator[Panel]:
    for title, metric, unit in (
        ("Records sent", PRODUCER + "record.send.total", "1/s"),
        ("Bytes sent", PRODUCER + "outgoing.byte.total", "By/s"),
        ("Records read", FETCH + "records.consumed.total", "1/s"),
        ("Bytes read", FETCH + "bytes.consumed.total", "By/s"),
    ):
        expr = added(metric, interval_s, "client_software_name")
        yield Panel(title=title, queries=[Query(expr, "{{client_software_name}}")], unit=unit, width=6)
    for title, metric in (
        ("Topics with most records sent", PRODUCER + "topic.record.send.total"),
        ("Topics with most bytes sent", PRODUCER + "topic.byte.total"),
    ):
        unit = "By/s" if "byte" in metric else "1/s"
        expr = f"topk({MOST}, {added(metric, interval_s, 'topic')})"
        yield Panel(title=title, queries=[Query(expr, "{{topic}}")], unit=unit, width=12)


def fleet(interval_s: int) -> Dashboard:
    info = filtered(INFO, FLEET_FILTER)
    clients = [
        Panel(
            title="Client instances", queries=[Query(f"count({info})")], unit="{client}", kind="stat", width=4
        ),
        Panel(
            title="Client instances by software",
            queries=[Query(f"count by (client_software_name) ({info})", "{{client_software_name}}")],
            unit="{client}",
            width=10,
        ),
        Panel(
            title="Connections opened",
            queries=[
                Query(added(prefix + "connection.creation.total", interval_s), role)
                for role, prefix in (("producers", PRODUCER), ("consumers", CONSUMER))
            ],
            unit="1/s",
            width=10,
        ),
    ]
    of_alerts = [of_alert(alert) for alert in alerts(interval_s)]
    standard, java = two_rows(of_alerts)
    return Dashboard(
        "fleet",
        "Kafka clients: fleet",
        "All clients: each panel has the question of an alert, and the clients nearest to its threshold.",
        [Row("Clients", clients), standard, java, Row(f"Volume: {JAVA_ONLY}", list(volumes(interval_s)))],
        [SOFTWARE, PRINCIPAL],
    )


# client


def unit_of_rate(metric: ClientMetric) -> tuple[str, str]:
    """The unit of a rate, and what makes it that: bytes by second, time by time, or events by minute."""
    if metric.unit == "By":
        return "By/s", ""
    if metric.unit in ("ms", "ns"):
        return "1", {"ms": " / 1000", "ns": " / 1000000000"}[metric.unit]
    return "1/min", " * 60"


def query_of(metric: ClientMetric, chart: Chart, interval_s: int) -> tuple[Query, str]:
    """The query of a client's metric, and its unit."""
    series = filtered(selector(metric.name), CLIENT_FILTER)
    unit = metric.unit
    if metric.kind == "sum":
        unit, scale = unit_of_rate(metric)
        series = f"rate({series}[{duration(window_s(interval_s))}]){scale}"
    labels = sorted(metric.levels[0]) if not has_two_levels(metric) else []
    return Query(series, " ".join([short_name(metric, chart), *map(template, labels)])), unit


def short_name(metric: ClientMetric, chart: Chart) -> str:
    return differing_words(metric.name, chart.metrics) or metric.name.removeprefix(PREFIX)


def of_chart(chart: Chart, interval_s: int) -> Panel:
    known = client_metrics()
    found = [query_of(known[name], chart, interval_s) for name in chart.metrics]
    helps = sorted({known[name].help for name in chart.metrics})
    return Panel(
        title=chart.title[0].upper() + chart.title[1:],
        queries=[query for query, _ in found],
        unit=found[0][1],
        description=" ".join(helps),
    )


def client(interval_s: int) -> Dashboard:
    about = filtered(INFO, CLIENT_FILTER)
    facts = [
        Panel(
            title="Facts",
            queries=[Query(about)],
            unit="{client}",
            kind="table",
            width=18,
            height=5,
            empty="only odradek-prometheus tells these facts",
        ),
        Panel(
            title="Time since the last push",
            queries=[Query(filtered("odradek_client_last_push_age_seconds", CLIENT_FILTER))],
            unit="s",
            kind="stat",
            width=6,
            height=5,
            empty="only odradek-prometheus tells this",
        ),
    ]
    panels = [of_chart(chart, interval_s) for concern in CONCERNS for chart in concern.charts]
    return Dashboard(
        "client",
        "Kafka clients: client",
        "All that matters of one client instance, by concern.",
        [Row("Client", facts), *two_rows(panels)],
        variables=[
            Variable("client_id", "Client id", "client_id"),
            Variable(
                "client_instance_id",
                "Instance",
                "client_instance_id",
                EVERY_CLIENT.replace("}", ',client_id=~"$client_id"}'),
            ),
        ],
        page="/clients/${client_instance_id}",
    )


# library versions


def by_version(interval_s: int) -> Iterator[Panel]:
    window = duration(window_s(interval_s))

    def per_client(metric: str) -> str:
        total = filtered(selector(metric), FLEET_FILTER)
        return f"avg by ({VERSION}) (rate({total}[{window}]))"

    def of_gauge(agg: str, metric: str) -> str:
        return f"{agg} by ({VERSION}) ({filtered(selector(metric), FLEET_FILTER)})"

    retried, sent = (
        f"sum by ({VERSION}) (rate({filtered(selector(PRODUCER + name), FLEET_FILTER)}[{window}]))"
        for name in ("record.retry.total", "record.send.total")
    )
    means = "The mean of the clients' means: each client counts the same, however much it sends."
    for title, expr, unit, description in (
        ("Request latency of producers", of_gauge("avg", PRODUCER + "node.request.latency.avg"), "ms", means),
        ("Longest request of a producer", of_gauge("max", PRODUCER + "node.request.latency.max"), "ms", ""),
        ("Request latency of consumers", of_gauge("avg", CONSUMER + "node.request.latency.avg"), "ms", means),
        ("Time of records in the queue", of_gauge("avg", PRODUCER + "record.queue.time.avg"), "ms", means),
        ("Fetch latency", of_gauge("avg", FETCH + "fetch.latency.avg"), "ms", means),
        ("Commit latency", of_gauge("avg", COORDINATOR + "commit.latency.avg"), "ms", means),
        (
            "Share of the time in rebalances, by member",
            per_client(COORDINATOR + "rebalance.latency.total") + " / 1000",
            "1",
            "",
        ),
        (
            "Connections opened, by producer",
            per_client(PRODUCER + "connection.creation.total") + " * 60",
            "1/min",
            "",
        ),
        ("Share of records sent again", f"{retried} / {sent}", "1", ""),
        ("Records lost, by producer", per_client(PRODUCER + "record.error.total") + " * 60", "1/min", ""),
        ("Rebalances, by member", per_client(COORDINATOR + "rebalance.total") + " * 60", "1/min", ""),
        ("Longest lag", of_gauge("max", FETCH + "records.lag.max"), "{record}", ""),
    ):
        legend = "{{client_software_name}} {{client_software_version}}"
        yield Panel(title=title, queries=[Query(expr, legend)], unit=unit, description=description)


def versions(interval_s: int) -> Dashboard:
    counted = f"count by ({VERSION}) ({filtered(INFO, FLEET_FILTER)})"
    clients = [
        Panel(
            title="Client instances by library version",
            queries=[Query(f"sort_desc({counted})")],
            unit="{client}",
            kind="table",
            width=12,
            description="Compare with the end of support of each library. Clients without a software name "
            "are older than KIP-511 (Kafka 2.4).",
        ),
        Panel(
            title="Client instances over time",
            queries=[Query(counted, "{{client_software_name}} {{client_software_version}}")],
            unit="{client}",
            width=12,
        ),
    ]
    return Dashboard(
        "library-versions",
        "Kafka clients: library versions",
        "Which library versions run, and how they compare.",
        [Row("Clients", clients), *two_rows(list(by_version(interval_s)))],
        [SOFTWARE, PRINCIPAL],
    )


def dashboards(interval_s: int) -> list[Dashboard]:
    host = Dashboard(
        "host", "Kafka clients: host", "The Odradek hosts that receive the pushes, by themselves.", HOST_ROWS
    )
    groups = Dashboard(
        "groups",
        "Kafka clients: groups",
        "The lag of consumer groups, in seconds and in records.",
        GROUP_ROWS,
        [GROUP],
        page="/groups/${group}",
    )
    return [fleet(interval_s), client(interval_s), versions(interval_s), groups, host]


def variable(each: Variable) -> dict[str, Any]:
    query = f"label_values({each.series}, {each.label})"
    return {
        "name": each.name,
        "label": each.title,
        "type": "query",
        "datasource": DATA_SOURCE,
        "definition": query,
        "query": {"query": query, "refId": each.name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def presets_of(dashboard: Dashboard) -> Iterator[str]:
    """The presets that its panels need."""
    return (name for row in dashboard.rows for panel in row.panels for name in panel.presets)


def written(dashboard: Dashboard, console: str = "") -> str:
    """A dashboard as Grafana imports it, with a link to the console."""
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
    }
    place = {
        "name": "console",
        "label": "Console",
        "type": "constant",
        "hide": 2,
        "query": console or LOCAL_CONSOLE,
    }
    content = {
        "uid": f"odradek-{dashboard.id}",
        "title": dashboard.title,
        "description": " ".join(filter(None, (dashboard.description, needs(presets_of(dashboard))))),
        "tags": ["kafka-clients", "odradek"],
        "schemaVersion": 39,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "",
        "annotations": {"list": []},
        "links": [
            {
                "type": "dashboards",
                "tags": ["odradek"],
                "title": "Kafka clients",
                "asDropdown": True,
                "includeVars": True,
                "keepTime": True,
            },
            {
                "type": "link",
                "title": "Console",
                "url": "${console}" + dashboard.page,
                "icon": "external link",
            },
        ],
        "templating": {
            "list": [source, place, *(variable(each) for each in (CLUSTER, *dashboard.variables))]
        },
        "panels": placed(dashboard.rows),
    }
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"
