"""Rows of `odradek_spark.query.questions.series` as lines: labeled by what differs, sums as increases."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from odradek_spark.query.chart import Line
from odradek_spark.query.units import unit_of

Row = Mapping[str, Any]
Points = list[tuple[datetime, float]]
DELTA, CUMULATIVE = 1, 2
SECONDS_PER_MIN: Final = 60.0
BOOTSTRAP: Final = "node--"
COORDINATOR_BASE: Final = 2**31 - 1
"""The Java client calls its connection to a group's coordinator by this number minus the node's."""


def lines_of(rows: Iterable[Row], *, name_clients: bool = False) -> tuple[str, list[Line]]:
    """The unit and the lines for the rows of one or more metrics, in the order of time.

    A sum is drawn as its increase per minute.

    Args:
        rows: The rows.
        name_clients: Also name the client if there is only one.
    """
    grouped: dict[tuple[str, str, str, str], list[Row]] = {}
    for row in rows:
        key = (row["client_id"] or "", row["client_instance_id"], row["name"], row["attrs"] or "{}")
        grouped.setdefault(key, []).append(row)
    if not grouped:
        return "", []
    first = next(iter(grouped.values()))[0]
    is_sum = first["temporality"] in (DELTA, CUMULATIVE)
    unit = unit_of(first["name"], first["unit"])
    told = labels_of(list(grouped), name_clients=name_clients)
    lines = []
    for (key, found), (label, series) in zip(grouped.items(), told, strict=True):
        points = per_minute(found) if is_sum else [(row["ts"], row["number"]) for row in found]
        sibling = (key[0], key[1], key[2].removesuffix(".avg") + ".max", key[3])
        lines.append(
            Line(
                label,
                [at for at, _ in points],
                [value for _, value in points],
                series,
                is_secondary=key[2].endswith(".avg") and sibling in grouped,
            )
        )
    return f"{unit} per min".strip() if is_sum else unit, lines


def increases(rows: Sequence[Row]) -> list[tuple[datetime, datetime | None, float]]:
    """The increases of one sum: end and beginning of the time, and the increase.

    The beginning is None where it is unknown. A sum that became smaller was restarted.
    """
    found: list[tuple[datetime, datetime | None, float]] = []
    before: Row | None = None
    for row in rows:
        begin = before["ts"] if before is not None else row["start_ts"]
        if row["temporality"] == DELTA:
            found.append((row["ts"], begin, row["number"]))
        elif before is not None:
            fell = row["number"] < before["number"]
            found.append((row["ts"], begin, row["number"] - (0 if fell else before["number"])))
        before = row
    return found


def per_minute(rows: Sequence[Row]) -> Points:
    """The increase per minute of one sum."""
    found: Points = []
    for end, begin, value in increases(rows):
        seconds = (end - begin).total_seconds() if begin is not None else 0.0
        if seconds > 0:
            found.append((end, value * SECONDS_PER_MIN / seconds))
    return found


def labels_of(
    keys: Sequence[tuple[str, str, str, str]], *, name_clients: bool = False
) -> list[tuple[str, str]]:
    """For each series its label, and the label without max and avg. Only what differs is told.

    Args:
        keys: Client id, instance id, name of the metric and labels of each series.
        name_clients: Also name the client if there is only one.
    """
    attrs = [json.loads(each[3]) for each in keys]
    common = set.intersection(*(set(each[2].split(".")) for each in keys))
    alike = {
        name
        for name in {name for each in attrs for name in each}
        if len({str(each.get(name)) for each in attrs}) == 1
    }
    clients = {each[0] for each in keys}
    instances = {(each[0], each[1]) for each in keys}
    found = []
    for (client_id, instance, metric, _), told in zip(keys, attrs, strict=True):
        words = [word for word in metric.split(".") if word not in common]
        stat = [word for word in words if word in ("max", "avg")]
        own = [*(word for word in words if word not in stat)]
        own += [label_text(name, value) for name, value in sorted(told.items()) if name not in alike]
        who = [client_id or "-"] if name_clients or len(clients) > 1 else []
        if sum(each[0] == client_id for each in instances) > 1:
            who.append(instance[:6])
        own = who + own
        series = " ".join(own)
        found.append((" ".join([*own, *stat]) or ("all" if len(keys) > 1 else ""), series or "all"))
    return found


def label_text(name: str, value: object) -> str:
    """The value of a label; nodes that are no brokers' ids in words."""
    text = str(value)
    if name in ("node_id", "node.id"):
        node = text.removeprefix("node-")
        if node.startswith("-"):
            return "bootstrap"
        if node.isdecimal() and int(node) > COORDINATOR_BASE // 2:
            return f"coordinator {COORDINATOR_BASE - int(node)}"
        return f"node {node}"
    return f"partition {text}" if name == "partition" else text
