"""The views: SQL on the tables that both Spark and DuckDB understand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from odradek.findings.client_metrics import client_metrics
from odradek.plugin import LAG_SOURCE
from odradek_tables import schemas

NEAR_PUSHES = "near_pushes"
"""The pushes of the points that are read, and those that these may repeat."""
RETRY_INTERVALS = 2
"""An equal payload within this many push intervals is a repeated push."""
LONGEST_RETRY = RETRY_INTERVALS * timedelta(hours=1)
"""`interval.ms` is at most an hour (KIP-714)."""


def repeated(pushes: str) -> str:
    """The query for repeated pushes; not the first. A client that did not receive the answer sends its push
    again, and further copies of a record have its origin.

    Only pushes with a payload that occurs again are sorted; the others are hashed.

    Args:
        pushes: The name of the pushes: those of interest, and of two push intervals before.
    """
    return f"""
    SELECT src_partition, src_offset, client_instance_id FROM (
        SELECT src_partition, src_offset, client_instance_id, recv_ts, push_interval_ms, origin,
            lag(recv_ts) OVER (
                PARTITION BY client_instance_id, payload_hash ORDER BY recv_ts, src_partition, src_offset
            ) AS earlier_ts,
            row_number() OVER (
                PARTITION BY client_instance_id, payload_hash, origin
                ORDER BY recv_ts, src_partition, src_offset
            ) AS copy
        FROM {pushes}
        WHERE payload_bytes > 0 AND payload_hash IN (
            SELECT payload_hash FROM {pushes}
            WHERE payload_bytes > 0 GROUP BY payload_hash HAVING count(*) > 1
        )
    ) AS pushed
    WHERE date_diff('millisecond', earlier_ts, recv_ts) <= {RETRY_INTERVALS} * push_interval_ms
        OR (origin IS NOT NULL AND copy > 1)
"""


def counted(points: str, pushes: str) -> str:
    """The query for the points that count, without those of repeated pushes; ``pushes`` has both."""
    return f"""
    SELECT p.*, coalesce(p.value, CAST(p.value_int AS DOUBLE)) AS number
    FROM {points} AS p
    WHERE NOT EXISTS (
        SELECT 1 FROM ({repeated(pushes)}) AS again
        WHERE again.src_partition = p.src_partition AND again.src_offset = p.src_offset
            AND again.client_instance_id = p.client_instance_id
    )
"""


OF_CLIENTS = f"source IS DISTINCT FROM '{LAG_SOURCE}'"
"""Condition for the pushes of clients: the others are about groups and topics."""
WAY = "CASE WHEN observed THEN 'observed' ELSE coalesce(source, 'pushed') END"
"""How a push came: pushed to a host, observed by one, or the source that brought it in."""
WAYS = "string_agg(DISTINCT {0}, ',' ORDER BY {0})"
"""All ways of some pushes, as a list with commas."""
WAYS_OF_SPARK = "array_join(sort_array(collect_set({0})), ',')"

GROUP = ", ".join(["bucket", *(each.name for each in schemas.GROUP)])
LATEST = ("client_id", "software_name", "software_version", "principal", "client_address", "listener")
"""The attributes of a client's last push."""

SERIES_1H = "client_instance_id, name, unit, client_id, client_rack, group_id, topic, node_id"
"""The columns by which totals are kept. A change of version or broker does not restart a total."""


def clients_of(pushed: str) -> str:
    """The query for the attributes of each instance's last push; ``pushed`` is a condition on ``pushes``."""
    latest = ", ".join(f"max_by({name}, recv_ts) AS {name}" for name in LATEST)
    return f"""
    SELECT client_instance_id, {latest},
        min(recv_ts) AS first_seen,
        max(recv_ts) AS last_seen,
        count(*) AS pushes,
        CAST(sum(points) AS BIGINT) AS points,
        max_by(push_interval_ms, recv_ts) AS push_interval_ms,
        max_by(terminating, recv_ts) AS terminated,
        max_by(broker_id, recv_ts) AS broker_id,
        {WAYS.format(WAY)} AS ways
    FROM pushes WHERE {OF_CLIENTS} AND {pushed}
    GROUP BY client_instance_id
"""


TWO_LEVELS: Final = tuple(each.name for each in client_metrics().values() if len(each.levels) > 1)
"""Metrics that the Java client reports for a consumer as a whole and again for each topic or partition."""


LAG: Final[Mapping[str, str]] = {
    "lag": "odradek.group.lag",
    "offset": "odradek.group.offset",
    "lag_s": "odradek.group.lag.time",
    "unstable": "odradek.group.lag.unstable",
    "lost": "odradek.group.lost",
    "ahead": "odradek.group.ahead",
}
"""By column of `v_lag`: the metric of a partition that a group reads."""


def listed(names: Iterable[str]) -> str:
    return "(" + ", ".join(f"'{each}'" for each in names) + ")"


VIEWS: Final[Mapping[str, str]] = {
    "v_points": counted("points", NEAR_PUSHES),
    "v_clients": clients_of("true"),
    "v_rollup": f"""
    SELECT {GROUP},
        CAST(sum(n) AS BIGINT) AS n,
        CAST(sum(not_finite) AS BIGINT) AS not_finite,
        sum(r.sum) AS sum,
        sum(r.sum) / nullif(CAST(sum(n) AS DOUBLE), 0) AS mean,
        min(r.min) AS min,
        max(r.max) AS max,
        max_by(r.last, r.last_ts) AS last,
        max(r.last_ts) AS last_ts
    FROM rollup_5m AS r
    GROUP BY {GROUP}
""",
    "v_lag": f"""
    SELECT ts, json_extract_string(attrs, '$.group') AS group, topic, CAST(partition AS INTEGER) AS partition,
        {", ".join(f"max(CASE WHEN name = '{name}' THEN number END) AS {each}" for each, name in LAG.items())}
    FROM v_points WHERE name IN {listed(LAG.values())} GROUP BY ALL
""",
    "v_totals": f"""
    SELECT bucket, {SERIES_1H}, step,
        sum(step) OVER (PARTITION BY {SERIES_1H} ORDER BY bucket) AS cumulative
    FROM (
        SELECT bucket, {SERIES_1H}, coalesce(sum(r.sum), CAST(0 AS DOUBLE)) AS step,
            count(topic) OVER (PARTITION BY bucket, client_instance_id, name) AS of_topics
        FROM rollup_1h AS r
        WHERE kind = 2 AND temporality = 1
        GROUP BY bucket, {SERIES_1H}
    ) AS hours
    WHERE NOT (topic IS NULL AND of_topics > 0 AND name IN {listed(TWO_LEVELS)})
""",
}
"""``v_points``: the points without those of repeated pushes, with ``number``, the value of either type.
``v_clients``: one row per client instance, with the attributes of its last push. ``v_rollup``: the rollup of
five minutes, with its parts added up. ``v_lag``: the lag of groups over time. ``v_totals``: delta sums as
running totals by hour, from the first hour that ``rollup_1h`` has. Of `TWO_LEVELS` it has the rows of topics,
and none of the whole consumer beside them, so that a sum counts everything once."""
