"""Answers as tables for people: what matters first, numbers with units, times by the local clock.

JSON and CSV have the answers unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from operator import itemgetter
from typing import Any

import pyarrow as pa

from odradek.findings.client_metrics import PREFIX
from odradek.findings.concerns import CONCERNS, Concern
from odradek.findings.node_names import node_name
from odradek.findings.troubles import BY_ID, SILENCE, Trouble
from odradek_spark.cli.printing import Column, visible
from odradek_tables.query.units import duration, number, said, unit_of

Row = Mapping[str, Any]
PUSHED = "pushed"
OPEN = "open"
ORDER = {
    name: place
    for place, name in enumerate(
        name for concern in CONCERNS for chart in concern.charts for name in chart.names
    )
}
"""The place of each metric."""
MAX_LABEL = 24
MAX_SERIES = 6
"""Limit of the series of one metric."""
MAX_CLIENTS = 5
"""Limit of the clients in a summary."""
MAX_EPISODES = 10
"""Limit of the anomalies in a summary."""
WHOLE_MINUTES_S = 600
"""Longer durations are told in minutes."""


def column(heading: str, values: Iterable[object], *, optional: bool = False) -> Column:
    """A column of texts, numbers and times; numbers are right-aligned."""
    found = list(values)
    times = [value for value in found if isinstance(value, datetime)]
    if times:
        heading = f"{heading} ({zone(times[-1]).partition(' ')[0]})"
    right = any(isinstance(value, int | float) and not isinstance(value, bool) for value in found)
    return Column(heading, [text(value) for value in found], right, optional)


def text(value: object) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return clock(value)
        case int() | float():
            return number(value)
    return visible(str(value))


def measured(heading: str, values: Iterable[tuple[float | None, str]]) -> Column:
    return Column(heading, [said(value, unit) for value, unit in values], right=True)


def columns(rows: Sequence[Row], named: str, *, optional: bool = False) -> list[Column]:
    """Columns of rows, from a text with their names and other headings: ``points, last_ts: last point``."""
    pairs = [each.strip().partition(": ") for each in named.split(",")]
    return [
        column(heading or name, (row[name] for row in rows), optional=optional) for name, _, heading in pairs
    ]


def clients_table(rows: Sequence[Row]) -> list[Column]:
    optional = (
        "software, pushes, terminated, first_seen: first push, points, principal, client_address, broker_id"
    )
    return [
        *columns(rows, "client_id, client_instance_id, last_seen: last push"),
        *columns(rows, "ways: came by", optional=all(row["ways"] == PUSHED for row in rows)),
        *columns(rows, optional, optional=True),
    ]


def top_table(rows: pa.Table, metric: str, by: str, aggregate: str) -> list[Column]:
    found = rows.to_pylist()
    return [
        *columns(found, by),
        measured(aggregate, ((row["value"], unit_of(metric, row["unit"])) for row in found)),
        *columns(found, "points, instances, last_ts: last point"),
    ]


def throttled_table(rows: Sequence[Row]) -> list[Column]:
    """Rows of `odradek_tables.query.questions.throttled`: a row for each minute and client."""
    minutes: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        stem, _, stat = str(row["name"]).removeprefix(PREFIX).rpartition(".")
        asked = stem.partition(".throttle.")[0].rpartition(".")[2]
        key = (row["minute"], row["client_id"], asked, row["client_instance_id"])
        minutes.setdefault(key, {**row, "requests": asked})[stat] = row["throttle_ms"]
    found = list(minutes.values())
    return [
        *columns(found, "minute, client_id, requests"),
        *(measured(stat, ((row.get(stat), "ms") for row in found)) for stat in ("avg", "max")),
        *columns(found, "client_instance_id", optional=True),
    ]


def versions_table(rows: Sequence[Row]) -> list[Column]:
    required = "software_name: software, software_version: version, instances, client_ids: client ids, pushes"
    optional = "last_seen: last push, first_seen: first push"
    return [*columns(rows, required), *columns(rows, optional, optional=True)]


def anomalies_table(rows: Sequence[Row], latest: datetime) -> list[Column]:
    """Rows of `odradek_tables.query.questions.anomalies`; ``latest`` is the time of the last push."""
    optional = "cause, reason: end, client_instance_id, principal, client_address, client_rack, group_id"
    return [
        *columns(rows, "rule, client_id, started_ts: began"),
        Column("lasted", [lasting(row, latest) for row in rows], right=True),
        Column("worst", [worst(row) for row in rows], right=True, optional=True),
        column("labels", (labels(row["attrs"]) for row in rows), optional=True),
        *columns(rows, optional, optional=True),
    ]


def lasting(row: Row, latest: datetime) -> str:
    """The duration of an anomaly; in minutes if it is long."""
    end = row["last_ts"] if row["closed_ts"] is None else max(row["closed_ts"], row["last_ts"])
    seconds = ((max(latest, end) if row["state"] == OPEN else end) - row["started_ts"]).total_seconds()
    shown = duration(seconds if seconds < WHOLE_MINUTES_S else seconds // 60 * 60)
    return f"{shown}, open" if row["state"] == OPEN else shown


def worst(row: Row) -> str:
    """The worst value of an anomaly; the unit's explanation stands in the rule's condition."""
    known = BY_ID.get(row["rule"])
    unit = known.unit if known is not None else unit_of(row["name"] or "", None)
    return said(row["worst"], unit.partition(" in ")[0].partition(" of ")[0].removeprefix("push "))


def advice(rows: Sequence[Row]) -> list[str]:
    """A paragraph for each rule of the table of troubles: its condition, and what to do."""
    found = []
    for rule in dict.fromkeys(row["rule"] for row in rows):
        known = BY_ID.get(rule)
        if known is not None:
            name = next(iter(known.metrics.values())).removeprefix(PREFIX)
            asked = "no push" if name == SILENCE else name
            found.append(f"{rule} ({asked}: {stated(known)}): {known.advice}")
    return found


def stated(trouble: Trouble) -> str:
    """The condition of a trouble for people: ``above 5 s for 3 min``."""
    side = {">": "above", ">=": "from", "<": "below", "<=": "up to"}[trouble.op]
    held = f" for {duration(trouble.for_s)}" if trouble.for_s else ""
    if trouble.op == ">" and not trouble.threshold:
        return f"any{held}"
    return f"{side} {said(trouble.threshold, trouble.unit)}{held}"


def labels(attrs: str | None) -> str:
    told: Mapping[str, object] = json.loads(attrs) if attrs else {}
    return visible(" ".join(label_text(name, value) for name, value in sorted(told.items())))


def label_text(name: str, value: object) -> str:
    """The value of a label; nodes that are no brokers' ids in words."""
    if name in ("node_id", "node.id"):
        node = node_name(str(value))
        return (
            "bootstrap"
            if node.startswith("-")
            else f"node {node}".replace("node coordinator-", "coordinator ")
        )
    return f"partition {value}" if name == "partition" else str(value)


def shortened(text: str, chars: int) -> str:
    """A text of at most so many characters, shortened in the middle: names often differ at the end."""
    head = (chars - 1) // 2
    return text if len(text) <= chars else f"{text[:head]}…{text[head + 1 - chars :]}"


def client_summary(clients: Sequence[Row], episodes: Sequence[Row], latest: datetime) -> list[str]:
    """Lines about clients: who they are, what they pushed, and their troubles."""
    lines = []
    for each in clients[:MAX_CLIENTS]:
        who = f"{visible(each['client_id'] or '-')}  {each['client_instance_id']}"
        ended = ", then terminated" if each["terminated"] else ""
        seen = f"{span(each['first_seen'], each['last_seen'])} ({zone(each['last_seen'])})"
        lines += [
            who,
            f"  {visible(each['software'] or '-')}, {visible(each['principal'] or '-')} "
            f"at {visible(each['client_address'] or '-')}",
            f"  {each['pushes']:,} pushes, {each['points']:,} points, {seen}{ended}",
            *provenance(each),
        ]
    if len(clients) > MAX_CLIENTS:
        lines.append(f"and {len(clients) - MAX_CLIENTS:,} more clients: odradek spark query clients")
    for each in episodes[:MAX_EPISODES]:
        began = f"{clock(each['started_ts'])}, {lasting(each, latest)}"
        name = f"{visible(each['client_id'] or '-')}: " if len(clients) > 1 else ""
        cause = f" ({visible(each['cause'])})" if each["cause"] else ""
        lines.append(f"  {name}{each['rule']}{cause}: from {began}, up to {worst(each)}")
    if len(episodes) > MAX_EPISODES:
        lines.append(f"  and {len(episodes) - MAX_EPISODES:,} more: odradek spark query anomalies")
    return lines


def provenance(client: Row) -> list[str]:
    ways = client["ways"].split(",")
    if len(ways) > 1:
        return [
            f"  arrives by {len(ways)} ways: {visible(', '.join(ways))}",
            "  totals count it more than once: switch off all ways but one",
        ]
    if ways == [PUSHED]:
        return []
    return [f"  came by {visible(ways[0])}, broker {client['broker_id']}"]


def series_tables(rows: Sequence[Row], *, everything: bool) -> list[tuple[str, list[Column]]]:
    """Rows of `odradek_tables.query.questions.client` by concern: titles and tables.

    With ``everything`` also the metrics of no concern, and more than the largest series of a metric.
    """
    ordered = sorted(rows, key=lambda row: ORDER.get(row["name"], len(ORDER)))  # others come last
    groups = [(concern.title, names_of(concern)) for concern in CONCERNS]
    if everything:
        known = {name for _, names in groups for name in names}
        groups.append(("Other metrics", {row["name"] for row in rows} - known))
    else:
        ordered = [row for _, found in groupby(ordered, itemgetter("name")) for row in largest(list(found))]
    found = [(title, [row for row in ordered if row["name"] in names]) for title, names in groups]
    return [(title, series_table(group)) for title, group in found if group]


def largest(rows: Sequence[Row]) -> list[Row]:
    """The series of a metric with the largest values, in their order."""
    ranked = sorted(range(len(rows)), key=lambda place: -(rows[place]["max"] or 0.0))
    return [rows[each] for each in sorted(ranked[:MAX_SERIES])]


def names_of(concern: Concern) -> set[str]:
    return {name for chart in concern.charts for name in chart.names}


def series_table(rows: Sequence[Row]) -> list[Column]:
    """Rows of `odradek_tables.query.questions.client`: a line for each series."""
    instances = {row["client_instance_id"] for row in rows}
    clients = {row["client_id"] for row in rows}
    own = [
        (row["client_id"] or "-")
        if len(clients) > 1
        else row["client_instance_id"][:6] * (len(instances) > 1)
        for row in rows
    ]
    told = [" ".join(filter(None, [mine, labels(row["attrs"])])) for mine, row in zip(own, rows, strict=True)]
    units = [unit_of(row["name"], row["unit"]) for row in rows]
    table = [Column("metric", [visible(row["name"].removeprefix(PREFIX)) for row in rows])]
    if any(told):
        table.append(Column("labels", [visible(shortened(each, MAX_LABEL)) for each in told]))
    return table + [
        Column(
            stat,
            [each_of(row, stat, unit) for row, unit in zip(rows, units, strict=True)],
            right=True,
            optional=stat != "max",
        )
        for stat in ("max", "last", "mean")
    ]


def each_of(row: Row, stat: str, unit: str) -> str:
    """A value of a series; of a sum of deltas, the total stands in place of the last increase."""
    if row["total"] is None:
        return said(row[stat], unit)
    return f"{said(row['total'], unit)} in all" if stat == "last" else "-"


def local(at: datetime) -> datetime:
    """A time by the clock of this computer, without its zone."""
    return at.astimezone().replace(tzinfo=None)


def zone(at: datetime) -> str:
    """The zone of this computer's clock: ``CET (UTC+01:00)``."""
    here = at.astimezone()
    name, offset = here.tzname() or "", f"UTC{here.isoformat()[-6:]}" if here.utcoffset() else "UTC"
    return name if name == offset else f"{name} ({offset})"


def clock(at: datetime) -> str:
    """The local date and time, to the minute."""
    return f"{local(at):%Y-%m-%d %H:%M}"


def span(start: datetime, end: datetime) -> str:
    """Two times; the day once if it is the same."""
    first, last = local(start), local(end)
    return f"{clock(start)} to {f'{last:%H:%M}' if first.date() == last.date() else clock(end)}"
