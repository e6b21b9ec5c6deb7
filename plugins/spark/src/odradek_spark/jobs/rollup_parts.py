"""Parts of a rollup: each task reads some files, adds them up in DuckDB and writes the sums.

`odradek_spark.jobs.rollup.rollup` defines the columns; tests compare the two. Spark's own aggregation would
take twenty-five times the CPU, because it sorts all points if a group has a struct or a sketch
(host/docs/decisions/0018-rollups-in-the-workers.md).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from odradek_spark.jobs.accepted import RETRIES_BEFORE
from odradek_spark.jobs.sketch import sketch, union
from odradek_spark.jobs.writing import GROUP_ROWS
from odradek_spark.query.reader import near_condition
from odradek_spark.query.views import NEAR_PUSHES, VIEWS
from odradek_spark.tables.duckdb_files import add_table, connection, quoted
from odradek_spark.tables.files import ARRIVED, Manifest, TableFiles
from odradek_spark.tables.levels import EVERYTHING, Levels
from odradek_spark.tables.log import AddedFile, LiveFile
from odradek_spark.tables.schemas import AGGREGATES, POINTS, PUSHES, Table

TASK_ROWS = 4 << 20
"""Approximate number of points that a task adds up."""
MEMORY = "1GB"
"""Memory limit of DuckDB in a task; beyond it, data goes to disk."""


@dataclass(frozen=True, slots=True)
class Part:
    """The files that a task reads, by their full paths."""

    points: tuple[str, ...]
    pushes: tuple[str, ...]
    """Files with the pushes of the points, and with earlier pushes that these may repeat."""
    since: str
    """The first receive time of the points, ISO 8601."""

    def text(self) -> str:
        """The part as a row that Spark carries."""
        return json.dumps(asdict(self))


@dataclass(frozen=True, slots=True)
class Parts:
    """Files of parts that a task adds up, by their paths relative to the table."""

    paths: tuple[str, ...]
    prefix: str = ARRIVED
    """The prefix of the names of the files to write."""
    by_hour: bool = True
    """Whether each hour goes to a file of its own, so that it can be merged by itself."""

    def text(self) -> str:
        """The parts as a row that Spark carries."""
        return json.dumps(asdict(self))


def planned(root: str, points: Iterable[AddedFile], pushes: Sequence[LiveFile]) -> list[Part]:
    """Split points in the order of arrival into parts of about `TASK_ROWS`."""
    found: list[Part] = []
    held: list[AddedFile] = []
    earliest = datetime.min.replace(tzinfo=UTC)
    for each in sorted(points, key=lambda file: (file.recv_min or earliest, file.path)):
        if held and sum(file.rows for file in held) + each.rows > TASK_ROWS:
            found.append(part(root, held, pushes))
            held = []
        held.append(each)
    return [*found, part(root, held, pushes)] if held else found


def part(root: str, points: Sequence[AddedFile], pushes: Sequence[LiveFile]) -> Part:
    """A part of some files of points, with the pushes that are needed to exclude repeated ones."""
    since = min((each.recv_min for each in points if each.recv_min), default=datetime.min.replace(tzinfo=UTC))
    until = max((each.recv_max for each in points if each.recv_max), default=datetime.max.replace(tzinfo=UTC))
    near = [
        each.path
        for each in pushes
        if (each.recv_min is None or each.recv_min <= until)
        and (each.recv_max is None or each.recv_max + RETRIES_BEFORE >= since)
    ]
    return Part(
        tuple(f"{root}/{POINTS.name}/{each.path}" for each in points),
        tuple(f"{root}/{PUSHES.name}/{each}" for each in near),
        since.isoformat(),
    )


def write_part(root: str, table: Table, levels: Levels, text: str) -> list[Manifest]:
    """Add up some files of points and write the sums as files of a rollup.

    Args:
        root: Path or URI of the dataset.
        table: `ROLLUP_5M` or `ROLLUP_1H`.
        levels: The metrics and labels to keep.
        text: A `Part` as JSON.

    Raises:
        OSError: The store is full.
    """
    with opened_part(root, Part(**json.loads(text))) as opened:
        rows = opened.sql(sums(table, levels)).to_arrow_reader(GROUP_ROWS)
        return written(root, table, rows)


def write_merged(root: str, source: Table, table: Table, levels: Levels | None, text: str) -> list[Manifest]:
    """Add up parts and write the sums.

    Args:
        root: Path or URI of the dataset.
        source: The table of the parts.
        table: The table to write: the same, or one with longer buckets.
        levels: The labels to keep; None for those of the parts.
        text: `Parts` as JSON.

    Raises:
        OSError: The store is full.
    """
    parts = Parts(**json.loads(text))
    with database() as opened:
        add_table(opened, root, source, [f"{root}/{source.name}/{each}" for each in parts.paths], "parts")
        rows = opened.sql(merges(table, levels)).to_arrow_reader(GROUP_ROWS)
        return written(root, table, rows, parts.prefix, by_hour=parts.by_hour)


@contextmanager
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that uses one core, limited memory, and a folder of its own beyond that."""
    with tempfile.TemporaryDirectory(prefix="odradek-rollup-") as folder, connection() as opened:
        opened.execute(f"SET threads = 1; SET memory_limit = '{MEMORY}'; SET temp_directory = '{folder}'")
        opened.execute("SET preserve_insertion_order = false")
        yield opened


@contextmanager
def opened_part(root: str, found: Part) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database with the files of a part, and the view of the points that count."""
    with database() as opened:
        add_table(opened, root, POINTS, found.points)
        add_table(opened, root, PUSHES, found.pushes, "early_pushes")
        near = near_condition(opened, "early_pushes", datetime.fromisoformat(found.since))
        opened.execute(f"CREATE VIEW {NEAR_PUSHES} AS FROM early_pushes WHERE {near}")
        opened.execute(f"CREATE VIEW v_points AS {VIEWS['v_points']}")
        yield opened


def written(
    root: str, table: Table, rows: pa.RecordBatchReader, prefix: str = ARRIVED, *, by_hour: bool = True
) -> list[Manifest]:
    """Write the rows of a rollup."""
    files: dict[str, TableFiles] = {}
    with ExitStack() as writing:
        for batch in rows:
            whole = with_sketches(table, pa.Table.from_batches([batch]))
            for name, part in hours_of(whole, prefix) if by_hour else [(prefix, whole)]:
                if name not in files:
                    files[name] = writing.enter_context(TableFiles(root, table, name))
                files[name].write(part)
    return [manifest for each in files.values() for manifest in each.manifests]


def hours_of(rows: pa.Table, prefix: str) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each hour, and the prefix of the names of its files."""
    hours = pc.hour(rows["bucket"])
    for hour in pc.unique(hours).to_pylist():
        yield f"{prefix}-h{hour:02}", rows.filter(pc.equal(hours, hour))


def with_sketches(table: Table, rows: pa.Table) -> pa.Table:
    """The rows with the columns of a rollup; lists of instances or of sketches become one sketch."""
    if has_sketch(table):
        at = rows.schema.get_field_index("instances")
        lists = rows["instances"]
        convert = sketches if pa.types.is_string(lists.type.value_type) else united
        rows = rows.set_column(at, "instances", convert(lists))
    return rows.select(table.schema.names).cast(table.schema)


def group(table: Table) -> list[str]:
    """The columns by which a rollup groups, besides the bucket."""
    added = {"bucket", "date", "instances", *(each.name for each in AGGREGATES)}
    return [name for name in table.schema.names if name not in added]


def has_sketch(table: Table) -> bool:
    """Whether a rollup has a sketch of the instances, because it does not group by them."""
    return "instances" in table.schema.names


def order(table: Table) -> str:
    """The columns by which rows are sorted: those of a metric together, then those of a client or a label.

    Readers skip the row groups of other metrics, and sorted ids take little room.
    """
    return ", ".join(
        each
        for each in ("name", "client_instance_id", "topic", "node_id", "software_version", "bucket")
        if each in table.schema.names
    )


def sums(table: Table, levels: Levels) -> str:
    """The query for the rows of a rollup of points; ``instances`` are lists, for `with_sketches`."""
    keys = ", ".join(group(table))
    if has_sketch(table):
        chosen, kept = without(levels.dropped), "true"
    else:
        chosen, kept = "*", " OR ".join(map(selects, levels.client_metrics)) or "false"
    return f"""
        SELECT * EXCLUDE (latest), latest.finite AS last, latest.ts AS last_ts,
            strftime(bucket, '%Y-%m-%d') AS date
        FROM (
            SELECT time_bucket(INTERVAL {table.bucket_s} SECOND, ts) AS bucket, {keys},
                count(finite) AS n, count(number) - count(finite) AS not_finite,
                sum(finite) AS sum, min(finite) AS min, max(finite) AS max,
                max(CASE WHEN finite IS NOT NULL THEN {{'ts': ts, 'finite': finite}} END) AS latest,
                CAST(sum(CAST(value_int AS HUGEINT)) AS DECIMAL(38, 0)) AS sum_int,
                {"list(DISTINCT client_instance_id)" if has_sketch(table) else "NULL"} AS instances
            FROM (
                SELECT {chosen}, CASE WHEN isfinite(number) THEN number END AS finite
                FROM v_points WHERE {kept}
            )
            WHERE number IS NOT NULL
            GROUP BY bucket, {keys}
        ) ORDER BY {order(table)}
    """


def merges(table: Table, levels: Levels | None) -> str:
    """The query for the sums of ``parts``; ``instances`` are lists, for `with_sketches`."""
    keys = ", ".join(group(table))
    chosen = "*" if levels is None else without(levels.dropped)
    return f"""
        SELECT * EXCLUDE (latest), latest.finite AS last, latest.ts AS last_ts,
            strftime(bucket, '%Y-%m-%d') AS date
        FROM (
            SELECT time_bucket(INTERVAL {table.bucket_s} SECOND, parts.bucket) AS bucket, {keys},
                CAST(sum(n) AS BIGINT) AS n, CAST(sum(not_finite) AS BIGINT) AS not_finite,
                sum(parts.sum) AS sum, min(parts.min) AS min, max(parts.max) AS max,
                max(CASE WHEN last_ts IS NOT NULL THEN {{'ts': last_ts, 'finite': parts.last}} END) AS latest,
                CAST(sum(sum_int) AS DECIMAL(38, 0)) AS sum_int,
                {"list(instances)" if has_sketch(table) else "NULL"} AS instances
            FROM (SELECT {chosen} FROM parts) AS parts
            GROUP BY time_bucket(INTERVAL {table.bucket_s} SECOND, parts.bucket), {keys}
        ) ORDER BY {order(table)}
    """


def without(columns: Sequence[str]) -> str:
    """All columns, with null in some."""
    nulls = ", ".join(f"CAST(NULL AS VARCHAR) AS {each}" for each in columns)
    return f"* REPLACE ({nulls})" if nulls else "*"


def selects(prefix: str) -> str:
    """SQL condition for the metrics of a prefix."""
    return "true" if prefix == EVERYTHING else f"starts_with(name, {quoted(prefix)})"


def sketches(instances: pa.ChunkedArray) -> pa.Array:
    """Convert lists of texts to HLL sketches in the format of Spark's ``hll_sketch_agg``."""
    return pa.array([sketch(each) for each in instances.to_pylist()], pa.binary())


def united(found: pa.ChunkedArray) -> pa.Array:
    """Merge lists of sketches."""
    return pa.array([union(each) for each in found.to_pylist()], pa.binary())
