"""Ranks clients by a metric, from the rollup by client where it has the metric.

The points of a fleet are sorted by client, so a question about all clients would read all of them. The rollup
has every whole hour of the chosen metrics, sorted by metric. Points are read only for the parts of hours at
the ends of the time range, and for what has arrived since the last run of the rollup. The answer is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Final

import pyarrow as pa

from odradek.findings.client_metrics import PREFIX
from odradek_spark.query.reader import TWO_INTERVALS, Reader, between
from odradek_spark.query.views import TWO_LEVELS, counted, listed
from odradek_spark.tables.coverage import coverage, covered_from, first_whole_hour
from odradek_spark.tables.dataset import DatasetError
from odradek_spark.tables.duckdb_files import add_table
from odradek_spark.tables.following import OffsetSpan, news
from odradek_spark.tables.log import CLOCK_SKEW_MAX
from odradek_spark.tables.schemas import POINTS, PUSHES, ROLLUP_1H

ROLLUP: Final = f"rollup:{ROLLUP_1H.name}"
"""The application id of the rollup by client."""
MERGED: Final[Mapping[str, str]] = {
    "max": "max(max)",
    "mean": "sum(sum) / CAST(sum(n) AS DOUBLE)",
    "sum": "sum(sum)",
    "min": "min(min)",
}
"""By aggregate: the query for the sums of parts and points."""
NOTHING: Final = "false"
NUMBERS = count()
"""Numbers for the names of views: a connection may rank more than once."""


Range = tuple[datetime | None, datetime | None]
"""From a time to before another; None is open."""


@dataclass(frozen=True, slots=True)
class Sources:
    """The rows that answer a question: files, and conditions on their rows."""

    points: Sequence[str]
    ends: str
    """The condition on ``points``."""
    pushes: Sequence[str]
    """Files with the pushes of all points, and with those that they may repeat."""
    hours: Sequence[str] = ()
    """Files of the rollup."""
    whole: str = NOTHING
    """The condition on ``bucket`` of ``hours``."""
    fresh: Sequence[str] = ()
    """Files with points that the rollup does not have yet."""
    fresh_within: str = NOTHING
    """The condition on ``fresh``."""


def sources(reader: Reader, name: str, by: str, asked: Range) -> Sources:
    """Choose the rows for a question about a metric, by a column of ``points``."""
    everything = Sources(reader.paths(POINTS, *asked), between("ts", *asked), pushes_of(reader, [asked]))
    rollup = reader.dataset.open(ROLLUP_1H)
    complete = None if rollup is None else covered_from(coverage(rollup), name)
    if complete is None or by not in ROLLUP_1H.schema.names:
        return everything
    try:
        found = news(reader.dataset, POINTS, ROLLUP_1H, ROLLUP)
    except DatasetError:  # the last run of the rollup is too long ago
        return everything
    if found is not None and found.after is None:
        return everything
    whole = whole_hours(asked, complete)
    if None not in whole and whole[0] >= whole[1]:  # type: ignore[operator]
        return everything
    ends = [each for each in ((asked[0], whole[0]), (whole[1], asked[1])) if each[0] != each[1]]
    received = [] if found is None or found.since is None else [(found.since, None)]
    return Sources(
        points=joined(reader.paths(POINTS, *each) for each in ends),
        ends=" OR ".join(f"({between('ts', *each)})" for each in ends) or NOTHING,
        pushes=pushes_of(reader, [*ends, *received]),
        hours=reader.paths(ROLLUP_1H, *whole),
        whole=between("bucket", *whole),
        fresh=() if found is None else found.files,
        fresh_within=NOTHING if found is None else f"({within(found.spans)}) AND {between('ts', *whole)}",
    )


def within(spans: Sequence[OffsetSpan] | None) -> str:
    """The condition for the points of records."""
    return (
        " OR ".join(
            f"(src_partition = {part} AND src_offset >= {start} AND src_offset < {end})"
            for part, start, end in spans or ()
        )
        or NOTHING
    )


def whole_hours(asked: Range, complete: str) -> Range:
    """The whole hours of a time range that the rollup has."""
    since, until = asked
    begin = None if since is None else first_whole_hour(since.astimezone(UTC))
    if complete:
        known = datetime.fromisoformat(complete)
        begin = known if begin is None else max(begin, known)
    end = None if until is None else until.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    return begin, end


def pushes_of(reader: Reader, ranges: Iterable[Range]) -> list[str]:
    """Files with the pushes of the points of time ranges, and with those that they may repeat."""
    return joined(
        reader.paths(
            PUSHES,
            None if since is None else since - CLOCK_SKEW_MAX - TWO_INTERVALS,
            None if until is None else until + CLOCK_SKEW_MAX,
        )
        for since, until in ranges
    )


def joined(found: Iterable[Sequence[str]]) -> list[str]:
    """The paths of some lists, each once."""
    return sorted({path for each in found for path in each})


def ranked(reader: Reader, metric: str, asked: Range, by: str, aggregate: str, limit: int) -> pa.Table:
    """Rank clients by a metric; see `odradek_spark.query.questions.top`."""
    chosen = sources(reader, metric if metric.startswith(PREFIX) else PREFIX + metric, by, asked)
    root, opened, mine = reader.dataset.root, reader.connection, f"top_{next(NUMBERS)}"
    add_table(opened, root, POINTS, chosen.points, f"{mine}_points")
    add_table(opened, root, POINTS, chosen.fresh, f"{mine}_fresh")
    add_table(opened, root, PUSHES, chosen.pushes, f"{mine}_pushes")
    add_table(opened, root, ROLLUP_1H, chosen.hours, f"{mine}_hours")
    names: Sequence[object] = [metric, PREFIX + metric]
    of_hours = by if by in ROLLUP_1H.schema.names else "CAST(NULL AS VARCHAR)"  # then there are none
    once = f"NOT (name IN {listed(TWO_LEVELS)} AND topic IS {'' if by == 'topic' else 'NOT'} NULL)"
    return reader.ask(
        f"""
        WITH asked AS (
            FROM {mine}_points WHERE name IN ($1, $2) AND ({chosen.ends})
            UNION ALL FROM {mine}_fresh WHERE name IN ($1, $2) AND ({chosen.fresh_within})
        ),
        parts AS (
            SELECT {of_hours} AS one, unit, client_instance_id, n, sum, min, max, last_ts
            FROM {mine}_hours WHERE name IN ($1, $2) AND ({chosen.whole}) AND n > 0 AND {once}
            UNION ALL
            SELECT {by}, unit, client_instance_id, 1, number, number, number, ts
            FROM ({counted("asked", f"{mine}_pushes")}) WHERE isfinite(number) AND {once}
        )
        SELECT one AS {by}, {MERGED[aggregate]} AS value, max(unit) AS unit, CAST(sum(n) AS BIGINT) AS points,
            count(DISTINCT client_instance_id) AS instances, max(last_ts) AS last_ts
        FROM parts GROUP BY one
        ORDER BY value {"ASC" if aggregate == "min" else "DESC"}, one LIMIT {int(limit)}
        """,
        names,
    )
