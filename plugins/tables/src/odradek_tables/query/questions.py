"""The queries of KIP-714's two workflows: what happened to this client, and which clients stand out.

Each takes a `Reader` and returns a table whose columns its docstring lists. Times are UTC. Metric names may
omit ``org.apache.kafka.``.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from odradek.findings.client_metrics import PREFIX
from odradek_tables.following import last_received
from odradek_tables.query.reader import Reader
from odradek_tables.query.views import NEAR_PUSHES, TWO_LEVELS, clients_of, counted, listed

DIMENSIONS = (
    *("client_id", "client_instance_id", "software_version", "principal", "client_address", "client_rack"),
    *("group_id", "topic", "node_id", "broker_id"),
)
"""Columns by which `top` can group."""
AGGREGATES = {"max": "max", "mean": "avg", "sum": "sum", "min": "min"}
"""By name: the function of SQL."""
IDENTITY = ("client_id", "client_instance_id", "principal", "client_address")
"""Columns of the tables ``points``, ``pushes`` and ``anomalies`` that select clients."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A time range: from ``since`` to before ``until``; None is open."""

    since: datetime | None = None
    until: datetime | None = None

    def condition(self, column: str) -> tuple[str, list[object]]:
        bounds = [(f"{column} >= ?", self.since), (f"{column} < ?", self.until)]
        given = [(text, value) for text, value in bounds if value is not None]
        return " AND ".join(["true", *(text for text, _ in given)]), [value for _, value in given]


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    """Selects the clients that match all given values."""

    client_id: str | None = None
    client_instance_id: str | None = None
    principal: str | None = None
    client_address: str | None = None
    topic: str | None = None
    metric: str | None = None

    def condition(self) -> tuple[str, list[object]]:
        text, values = self.equal(*IDENTITY, "topic")
        if self.metric is not None:
            return f"{text} AND name IN (?, ?)", [*values, *spellings(self.metric)]
        return text, values

    def identity(self) -> tuple[str, list[object]]:
        return self.equal(*IDENTITY)

    def equal(self, *names: str) -> tuple[str, list[object]]:
        given = [(f"{name} = ?", getattr(self, name)) for name in names if getattr(self, name) is not None]
        return " AND ".join(["true", *(text for text, _ in given)]), [value for _, value in given]


def spellings(metric: str) -> list[str]:
    """A metric's name as given, and its full name."""
    return [metric, PREFIX + metric]


def clients(reader: Reader, window: Window, who: Who | None = None) -> pa.Table:
    """List the clients that pushed within the time range, or those of them that ``who`` selects.

    Columns: client_id, client_instance_id, software, principal, client_address, first_seen, last_seen,
    pushes, points, terminated, push_interval_ms, broker_id, ways.
    """
    during, values = window.condition("recv_ts")
    chosen, wanted = ("true", []) if who is None else who.identity()
    return reader.ask(
        f"""
        SELECT client_id, client_instance_id, software_name || ' ' || software_version AS software,
            principal, client_address, first_seen, last_seen, pushes, points, terminated, push_interval_ms,
            broker_id, ways
        FROM ({clients_of(f"{during} AND {chosen}")}) ORDER BY client_id, first_seen
        """,
        [*values, *wanted],
    )


def last_push(reader: Reader, window: Window) -> datetime | None:
    """The time of the last push of any client, by the log of the table; None if there is none."""
    latest = last_received(reader.dataset)
    return latest if latest is None or window.until is None else min(latest, window.until)


def client(reader: Reader, who: Who, window: Window) -> pa.Table:
    """Summarize the metrics of clients, one row for each series.

    Columns: client_id, client_instance_id, name, attrs, unit, points, first_ts, last_ts, min, mean, max,
    last, and total, which is null unless the values are deltas.
    """
    chosen, values = points_of(who, window)
    return reader.ask(
        f"""
        {chosen}
        SELECT client_id, client_instance_id, name, attrs, unit, count(*) AS points,
            min(ts) AS first_ts, max(ts) AS last_ts, min(number) AS min, avg(number) AS mean,
            max(number) AS max, max_by(number, ts) AS last,
            sum(number) FILTER (temporality = 1) AS total
        FROM counting GROUP BY client_id, client_instance_id, name, attrs, unit
        ORDER BY client_id, client_instance_id, name, attrs
        """,
        values,
    )


def series(reader: Reader, who: Who, window: Window) -> pa.Table:
    """The points that `client` summarizes, in the order of metrics and time.

    Columns: client_id, client_instance_id, name, attrs, unit, ts, number, temporality, start_ts.
    """
    chosen, values = points_of(who, window)
    return reader.ask(
        f"""
        {chosen}
        SELECT client_id, client_instance_id, name, attrs, unit, ts, number, temporality, start_ts
        FROM counting WHERE isfinite(number) ORDER BY name, ts
        """,
        values,
    )


def points_of(who: Who, window: Window) -> tuple[str, list[object]]:
    """The clause that names the points of some clients ``counting``, and its values.

    Only the pushes of these clients are compared with each other.
    """
    chosen, values = who.condition()
    during, times = window.condition("ts")
    theirs = "client_instance_id IN (SELECT DISTINCT client_instance_id FROM chosen)"
    return (
        f"""
        WITH chosen AS MATERIALIZED (SELECT * FROM points WHERE {chosen} AND {during}),
        theirs AS MATERIALIZED (SELECT * FROM {NEAR_PUSHES} WHERE {theirs}),
        counting AS ({counted("chosen", "theirs")})
        """,
        [*values, *times],
    )


def top(
    reader: Reader,
    metric: str,
    window: Window,
    by: str = "client_id",
    aggregate: str = "max",
    limit: int = 10,
) -> pa.Table:
    """Rank clients by a metric.

    Metrics that a client reports twice, for itself and by topic, are counted once: by topic if ``by`` is.

    Columns: the one in ``by``, ``value``, unit, points, instances, last_ts; ``by`` is one of `DIMENSIONS` and
    ``aggregate`` one of `AGGREGATES`. The largest comes first; for ``min`` the smallest.
    """
    chosen, values = points_of(Who(metric=metric), window)
    once = f"NOT (name IN {listed(TWO_LEVELS)} AND topic IS {'' if by == 'topic' else 'NOT'} NULL)"
    return reader.ask(
        f"""
        {chosen}
        SELECT {by}, {AGGREGATES[aggregate]}(number) AS value, max(unit) AS unit, count(*) AS points,
            count(DISTINCT client_instance_id) AS instances, max(ts) AS last_ts
        FROM counting WHERE isfinite(number) AND {once} GROUP BY {by}
        ORDER BY value {"ASC" if aggregate == "min" else "DESC"}, {by} LIMIT {int(limit)}
        """,
        values,
    )


def throttled(reader: Reader, window: Window, at_least_ms: float = 1.0) -> pa.Table:
    """List the minutes in which clients were throttled by a quota.

    Columns: minute, client_id, client_instance_id, name, throttle_ms (the longest that the client reported).
    """
    during, times = window.condition("ts")
    return reader.ask(
        f"""
        SELECT date_trunc('minute', ts) AS minute, client_id, client_instance_id, name,
            max(number) AS throttle_ms
        FROM v_points WHERE name LIKE '%.throttle.time.%' AND {during} AND isfinite(number)
        GROUP BY ALL HAVING max(number) >= ? ORDER BY minute, client_id, client_instance_id, name
        """,
        [*times, at_least_ms],
    )


def versions(reader: Reader, window: Window) -> pa.Table:
    """List the client libraries in use within the time range.

    Columns: software_name, software_version, instances, client_ids, pushes, first_seen, last_seen.
    """
    during, values = window.condition("recv_ts")
    return reader.ask(
        f"""
        SELECT software_name, software_version, count(*) AS instances,
            count(DISTINCT client_id) AS client_ids, CAST(sum(pushes) AS BIGINT) AS pushes,
            min(first_seen) AS first_seen, max(last_seen) AS last_seen
        FROM ({clients_of(during)})
        GROUP BY ALL ORDER BY instances DESC, software_name, software_version
        """,
        values,
    )


def anomalies(reader: Reader, window: Window, *, only_open: bool = False, who: Who | None = None) -> pa.Table:
    """List the anomalies that the rules found.

    Columns: rule, client_id, client_instance_id, principal, client_address, client_rack, group_id, name,
    attrs, op, threshold, worst, started_ts, last_ts, held_s, state, reason, closed_ts, cause.
    """
    during, values = window.condition("last_ts")
    chosen, wanted = ("true", []) if who is None else who.identity()
    still = "AND state = 'open'" if only_open else ""
    return reader.ask(
        f"""
        SELECT rule, client_id, client_instance_id, principal, client_address, client_rack, group_id,
            name, attrs, op, threshold, worst,
            started_ts, last_ts, date_diff('millisecond', started_ts, last_ts) / 1000 AS held_s,
            state, reason, closed_ts, cause
        FROM anomalies WHERE {during} AND {chosen} {still} ORDER BY started_ts, rule, client_id
        """,
        [*values, *wanted],
    )
