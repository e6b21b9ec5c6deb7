"""Pages for the answers of `odradek_spark.query.questions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import pyarrow as pa

from odradek.findings.client_metrics import PREFIX
from odradek.findings.concerns import Chart
from odradek.findings.troubles import Trouble
from odradek_spark.query.axes import LABEL_CHARS
from odradek_spark.query.behind import span_of
from odradek_spark.query.chart import Bars, Limit, Line, Page, Panel, Span, SpanPanel
from odradek_spark.query.concerns import concerns_of, is_limit, stated, troubles_of
from odradek_spark.query.series import Row, lines_of
from odradek_spark.query.units import unit_of

THROTTLE: Final = ".throttle.time."
STILL_INTERVALS: Final = 2.5
"""A client whose last push is within this many push intervals of the end still pushes."""
MAX_CLIENTS: Final = 40
"""Limit of the clients that are drawn one by one."""
COMPARED: Final = ("max", "mean", "min")
"""Aggregates that can be compared with a threshold of the metric."""


def client_pages(
    rows: Sequence[Row],
    title: str,
    subtitle: str,
    episodes: Sequence[Row] = (),
    latest: datetime | None = None,
) -> list[Page]:
    """A page for each concern of a client, with the metrics that it reports.

    Args:
        rows: Rows of `odradek_spark.query.questions.series`.
        title: The client.
        subtitle: More about it.
        episodes: Its anomalies, which are shaded in the panels of their metrics.
        latest: The time of the last push.
    """
    by_name: dict[str, list[Row]] = {}
    for row in rows:
        by_name.setdefault(row["name"], []).append(row)
    end = latest or max((row["ts"] for row in rows), default=None)
    between = (min(row["ts"] for row in rows), end) if rows and end is not None else None
    pages = []
    for concern, charts in concerns_of(by_name):
        panels = []
        for chart, names in charts:
            ill = [
                span_of(each, end, f"anomaly: {each['rule']}")
                for each in episodes
                if end is not None and each["name"] in names
            ]
            panels.append(
                metric_panel(chart.title, names, [row for name in names for row in by_name[name]], ill)
            )
        pages.append(Page(concern.id, f"{title}: {concern.title}", panels, subtitle, between=between))
    return pages or [Page("client", title, (), subtitle)]


def metric_pages(rows: Sequence[Row], title: str, subtitle: str) -> list[Page]:
    """A page with a panel for each metric of some rows, whatever they are."""
    names = dict.fromkeys(row["name"] for row in rows)
    panels = [
        metric_panel(name.removeprefix(PREFIX), (name,), [row for row in rows if row["name"] == name])
        for name in names
    ]
    return [Page("metric", title, panels, subtitle)]


def metric_panel(
    title: str,
    names: Sequence[str],
    rows: Sequence[Row],
    spans: Sequence[Span] = (),
    *,
    name_clients: bool = False,
) -> Panel:
    """A panel with the lines of some metrics, and the thresholds that the table of troubles has for them."""
    unit, lines = lines_of(rows, name_clients=name_clients)
    troubles = troubles_of(names)
    limits = [Limit(each.threshold, alarm(each)) for each in troubles if is_limit(each)]
    note = "; ".join(alarm(each) for each in troubles if not is_limit(each))
    return Panel(title, unit, lines, limits, spans, note)


def alarm(trouble: Trouble) -> str:
    """The name and the condition of a trouble."""
    return f"alarm {trouble.id}: {stated(trouble)}"


def throttle_page(rows: Sequence[Row], at_least_ms: float) -> Page:
    """The throttle times of the clients that were throttled: a panel for each kind of request.

    Args:
        rows: Rows of `odradek_spark.query.questions.series` for metrics of throttle times.
        at_least_ms: The shortest throttle time that was asked for.
    """
    clients = sorted({row["client_id"] or "-" for row in rows})
    charts = [chart for concern, found in concerns_of({row["name"] for row in rows}) for chart in found]
    known = {name for _, names in charts for name in names}
    others = sorted({row["name"] for row in rows} - known)
    charts += [(Chart(name.removeprefix(PREFIX), ()), (name,)) for name in others]
    panels = [
        metric_panel(chart.title, names, [row for row in rows if row["name"] in names], name_clients=True)
        for chart, names in charts
    ]
    title = f"Throttled clients: {len(clients)}" if clients else "Throttled clients"
    nothing = f"no client was throttled for {at_least_ms:g} ms or longer"
    return Page("throttled", title, panels, listed(clients), nothing)


def listed(names: Sequence[str], limit: int = 3) -> str:
    """Names, shortened if there are many."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def clients_page(clients: Sequence[Row], counts: Sequence[Row]) -> Page:
    """When clients pushed, and how many did.

    Args:
        clients: Rows of `odradek_spark.query.questions.clients`.
        counts: Rows of `odradek_spark.query.questions.fleet`: software, bucket, instances.
    """
    if not clients:
        return Page("clients", "Clients", (), nothing="no client pushed in this time range")
    latest = max(row["last_seen"] for row in clients)
    shown = sorted(clients, key=lambda row: changed(row, latest), reverse=True)[:MAX_CLIENTS]
    libraries = sorted({row["software"] or "" for row in clients})
    spans = [
        Span(
            client_label(row),
            row["first_seen"],
            row["last_seen"],
            is_pushing(row, latest),
            row["software"] or "",
        )
        for row in sorted(shown, key=by_library)
    ]
    lines: dict[str, list[Row]] = {}
    for row in counts:
        lines.setdefault(row["software"] or "", []).append(row)
    fleet = [
        Line(name, [row["bucket"] for row in lines[name]], [float(row["instances"]) for row in lines[name]])
        for name in sorted(lines)
    ]
    pushing = sum(is_pushing(row, latest) for row in clients)
    title = f"Client instances: {len(clients):,}, of which {pushing:,} still pushed at the end"
    more = len(clients) > MAX_CLIENTS
    which = (
        f"the {MAX_CLIENTS} that started or stopped last; " if more else "from the first push to the last; "
    )
    return Page(
        "clients",
        title,
        [
            Panel("client instances that pushed, by library", "", fleet),
            SpanPanel(f"{which}an arrow marks those that still push", spans, libraries),
        ],
    )


def client_label(row: Row) -> str:
    """The client of a row, with its library if there is room. The color says it too."""
    name = f"{row['client_id'] or '-'} {row['client_instance_id'][:6]}"
    whole = f"{name}  {row['software']}"
    return whole if len(whole) <= LABEL_CHARS else name


def by_library(row: Row) -> tuple[str, datetime, str]:
    return row["software"] or "", row["first_seen"], row["client_instance_id"]


def changed(row: Row, latest: datetime) -> datetime:
    """The last time at which a client started or stopped."""
    found: datetime = row["first_seen"] if is_pushing(row, latest) else row["last_seen"]
    return found


def is_pushing(row: Row, latest: datetime) -> bool:
    """Whether a client had not stopped by the time of the last push of all clients."""
    allowed = timedelta(milliseconds=STILL_INTERVALS * (row["push_interval_ms"] or 0))
    return not row["terminated"] and latest - row["last_seen"] <= allowed


def top_page(rows: pa.Table, metric: str, by: str, aggregate: str) -> Page:
    """Bars for rows of `odradek_spark.query.questions.top`, and the threshold of the metric."""
    name = metric if metric.startswith(PREFIX) else PREFIX + metric
    unit = unit_of(name, rows["unit"][0].as_py() if rows.num_rows else None)
    troubles = [each for each in troubles_of([name]) if is_limit(each) and aggregate in COMPARED]
    limits = [Limit(each.threshold, alarm(each)) for each in troubles]
    found = bars_of(rows.to_pylist(), (by,), "value")
    kind = {"max": "largest", "min": "smallest", "mean": "mean", "sum": "sum of"}[aggregate]
    return Page("top", f"{kind} {metric.removeprefix(PREFIX)} by {by}", [Bars("", unit, found, limits)])


def versions_page(rows: pa.Table) -> Page:
    """Bars for rows of `odradek_spark.query.questions.versions`."""
    found = bars_of(rows.to_pylist(), ("software_name", "software_version"), "instances")
    return Page("versions", "Client instances by library", [Bars("", "", found)])


def bars_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str], value: str) -> list[tuple[str, float]]:
    """A bar for each row, labeled with some of its columns."""
    return [
        (" ".join("-" if row[name] is None else str(row[name]) for name in names), float(row[value] or 0))
        for row in rows
    ]
