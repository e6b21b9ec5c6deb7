"""Parts of a rollup: each task reads some files, adds them up in DuckDB and writes the sums.

`odradek_spark.jobs.rollup.rollup` defines the columns; tests compare the two. Spark's own aggregation would
take twenty-five times the CPU, because it sorts all points if a group has a struct or a sketch
(host/docs/decisions/0018-rollups-in-the-workers.md).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from datasketches import hll_sketch, tgt_hll_type

from odradek_spark.jobs.accepted import RETRIES_BEFORE
from odradek_spark.query.reader import near_condition
from odradek_spark.query.views import NEAR_PUSHES, VIEWS
from odradek_spark.tables.duckdb_files import add_table, connection
from odradek_spark.tables.files import Manifest, TableFiles
from odradek_spark.tables.log import AddedFile, LiveFile
from odradek_spark.tables.schemas import AGGREGATES, POINTS, PUSHES, Table

SKETCH_LG_K = 10
"""1024 registers: the number of instances within 3.3 %, in at most 1 kB."""
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


def write_part(root: str, table: Table, text: str) -> list[Manifest]:
    """Add up some files of points and write the sums as files of a rollup.

    Args:
        root: Path or URI of the dataset.
        table: The rollup.
        text: A `Part` as JSON.

    Raises:
        OSError: The store is full.
    """
    with TableFiles(root, table) as files:
        files.write(added_up(root, table, Part(**json.loads(text))))
    return files.manifests


def added_up(root: str, table: Table, found: Part) -> pa.Table:
    """The rows of a part, with the columns of the rollup."""
    with tempfile.TemporaryDirectory(prefix="odradek-rollup-") as folder, connection() as opened:
        opened.execute(f"SET threads = 1; SET memory_limit = '{MEMORY}'; SET temp_directory = '{folder}'")
        opened.execute("SET preserve_insertion_order = false")
        add_table(opened, root, POINTS, found.points)
        add_table(opened, root, PUSHES, found.pushes, "early_pushes")
        near = near_condition(opened, "early_pushes", datetime.fromisoformat(found.since))
        opened.execute(f"CREATE VIEW {NEAR_PUSHES} AS FROM early_pushes WHERE {near}")
        opened.execute(f"CREATE VIEW v_points AS {VIEWS['v_points']}")
        rows = opened.sql(sums(table)).to_arrow_table()
    if has_sketch(table):
        at = rows.schema.get_field_index("instances")
        rows = rows.set_column(at, "instances", sketches(rows["instances"]))
    return rows.select(table.schema.names).cast(table.schema)


def group(table: Table) -> list[str]:
    """The columns by which a rollup groups, besides the bucket."""
    added = {"bucket", "date", "instances", *(each.name for each in AGGREGATES)}
    return [name for name in table.schema.names if name not in added]


def has_sketch(table: Table) -> bool:
    """Whether a rollup has a sketch of the instances, because it does not group by them."""
    return "instances" in table.schema.names


def sums(table: Table) -> str:
    """The query for the rows of a rollup; its ``instances`` are lists, which `sketches` converts."""
    keys = ", ".join(group(table))
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
            FROM (SELECT *, CASE WHEN isfinite(number) THEN number END AS finite FROM v_points)
            WHERE number IS NOT NULL
            GROUP BY bucket, {keys}
        )
    """


def sketches(instances: pa.ChunkedArray) -> pa.Array:
    """Convert lists of texts to HLL sketches in the format of Spark's ``hll_sketch_agg``."""
    return pa.array([sketch(each) for each in instances.to_pylist()], pa.binary())


def sketch(texts: Iterable[str]) -> Any:
    """A sketch of some texts."""
    found = hll_sketch(SKETCH_LG_K, tgt_hll_type.HLL_8)
    for each in texts:
        found.update(each)
    return found.serialize_compact()
