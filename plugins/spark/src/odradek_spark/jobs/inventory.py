"""The inventory: the identity of each client instance over time.

It is a slowly changing dimension (type 2): an instance has one row for as long as its attributes are the
same, and a new row once one of them changes. The id of the instance determines which of sixteen folders it is
in.

A run rewrites the rows of instances that pushed today or yesterday. Older rows are settled: they are in files
of their own, which runs neither read nor rewrite, and which expire. So the cost of a run depends on the
number of living instances, not on that of all instances ever seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from odradek_spark.frames import pushes as pushes_of
from odradek_spark.jobs.writing import write_frame
from odradek_spark.load import read_files, read_spans
from odradek_tables.dataset import JOB, Dataset
from odradek_tables.files import ARRIVED, SETTLED, Manifest, file_day
from odradek_tables.following import news, unsettled_from
from odradek_tables.log import LiveFile, live
from odradek_tables.query.views import OF_CLIENTS, WAY
from odradek_tables.schemas import CLIENTS, PUSHES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

APP_ID = "inventory"
BUCKETS = 16
TRACKED = ("client_id", "software_name", "software_version", "principal", "listener", "client_address")
"""Attributes whose change begins a new row. The broker is not one: an instance may push to any of them."""


SAID = ("push_interval_ms", "terminated", "broker_id", "source", "observed")
"""The facts of the last push."""


def inventory(df: DataFrame, clients: DataFrame | None = None) -> DataFrame:
    """The inventory of clients by their pushes.

    Args:
        df: A batch: rows of the table ``pushes``, or records of the topic. Receive times of an instance only
            grow, so normally none is older than a known row; an older one begins a row of its own.
        clients: Rows of the table ``clients`` to bring up to date: all unsettled rows of the instances in
            ``df``, and maybe others.

    Returns:
        The table ``clients``:

        * ``client_instance_id``, ``client_id``, ``software_name``, ``software_version``, ``principal``,
          ``listener``, ``client_address`` string.
        * ``valid_from``, ``last_seen`` timestamp: receive times of the first and the last push like this;
          ``valid_to`` timestamp: when an attribute changed, null for the last row of the instance.
        * ``pushes``, ``points`` bigint: their numbers, including repeated pushes.
        * ``push_interval_ms`` int: of the last push; ``terminated`` boolean: that was a terminating push;
          ``broker_id`` int, ``source`` string, ``observed`` boolean: of the last push.
        * ``ways`` string: how its pushes came, a sorted list with commas: ``pushed`` to a host, ``observed``
          by one, or the name of a source. Two of them: the instance arrives twice.
        * ``bucket`` int: 0 to 15, CRC-32 of the instance's id.
    """
    spans = spans_of(df if "push_interval_ms" in df.columns else pushes_of(df))
    if clients is not None:
        spans = spans.unionByName(clients.select(*spans.columns))
    in_order = Window.partitionBy("client_instance_id").orderBy("valid_from", "last_seen", *TRACKED)
    described = F.struct(*TRACKED)
    changed = ~F.lag(described).over(in_order).eqNullSafe(described)
    rows = spans.withColumn("era", F.sum(changed.cast("int")).over(in_order))
    said = F.struct(*SAID)
    latest = F.max_by(said, F.struct("last_seen", "terminated"))  # nothing follows a terminating push
    eras = rows.groupBy("client_instance_id", *TRACKED, "era").agg(
        F.min("valid_from").alias("valid_from"),
        F.max("last_seen").alias("last_seen"),
        F.sum("pushes").alias("pushes"),
        F.sum("points").alias("points"),
        *(latest[name].alias(name) for name in SAID),
        all_ways().alias("ways"),
    )
    by_era = Window.partitionBy("client_instance_id").orderBy("era")
    return (
        eras.withColumn("valid_to", F.lead("valid_from").over(by_era))
        .withColumn("bucket", bucket())
        .select(*CLIENTS.schema.names)
    )


def all_ways() -> Column:
    """The ways of some rows as one sorted list with commas; null if older versions wrote the rows."""
    found = F.array_distinct(F.flatten(F.transform(F.collect_set("ways"), lambda way: F.split(way, ","))))
    return F.nullif(F.array_join(F.array_sort(found), ","), F.lit(""))


def spans_of(pushes: DataFrame) -> DataFrame:
    """Each push of a client as a row of the inventory that begins and ends with it."""
    of_clients = pushes.where(OF_CLIENTS).withColumnRenamed("terminating", "terminated")
    return of_clients.select(
        "client_instance_id",
        *TRACKED,
        F.col("recv_ts").alias("valid_from"),
        F.col("recv_ts").alias("last_seen"),
        F.lit(1).cast("bigint").alias("pushes"),
        F.col("points").cast("bigint").alias("points"),
        *SAID,
        F.expr(WAY).alias("ways"),
    )


def bucket() -> Column:
    return (F.crc32(F.encode("client_instance_id", "utf-8")) % BUCKETS).cast("int")


@dataclass(frozen=True, slots=True)
class Inventoried:
    pushes: int
    files: int
    """The number of files of the inventory that were rewritten."""
    rows: int
    """The number of rows in these files."""


def run_inventory(spark: SparkSession, root: str) -> Inventoried | None:
    """Add the pushes that arrived since the last run to the inventory.

    Returns:
        None if no pushes arrived, or if another run was faster.

    Raises:
        DatasetError: Nothing has been ingested, or the last run was too long ago.
    """
    dataset = Dataset(root)
    dataset.create([CLIENTS])
    found = news(dataset, PUSHES, CLIENTS, APP_ID)
    if found is None:
        return None
    pushes = read_spans(spark, root, PUSHES, found.files, found.spans)
    touched = {str(row["bucket"]) for row in pushes.select(bucket().alias("bucket")).distinct().collect()}
    first_day = unsettled_from(dataset)
    old = [each for each in live(dataset.existing(CLIENTS)) if is_due(each, touched, first_day)]
    manifests: list[Manifest] = []
    if touched or old:
        known = read_files(spark, root, CLIENTS, [f"{dataset.uri(CLIENTS)}/{each.path}" for each in old])
        manifests = written(inventory(pushes, known).repartition(2, "bucket"), root, first_day)
    info = {JOB: APP_ID, "pushes": found.rows, "pushesVersion": found.version}
    if not dataset.commit_next(CLIENTS, manifests, APP_ID, found.after, found.version, info, old):
        return None
    return Inventoried(found.rows, len(old), sum(each.rows for each in old))


def is_due(file: LiveFile, touched: Iterable[str], first_day: date) -> bool:
    """Whether a run rewrites a file: it has rows of pushing instances, or rows that are to be settled."""
    if file_day(file.path, SETTLED) is not None:
        return False
    begin = file_day(file.path, ARRIVED)
    return file.partition["bucket"] in touched or begin is None or begin < first_day


def written(rows: DataFrame, root: str, first_day: date) -> list[Manifest]:
    """Write rows of the inventory, settled ones to files of their own.

    The name of a file has a day: the first of the rows that are not settled, or the last of settled ones.
    """
    rows = rows.localCheckpoint()  # both files are of the same rows
    begin = F.lit(datetime.combine(first_day, time.min, UTC))
    settled = rows.where(F.col("last_seen") < begin)
    settled = settled.withColumn("valid_to", F.coalesce("valid_to", "last_seen"))
    return [
        *write_frame(rows.where(F.col("last_seen") >= begin), root, CLIENTS, f"{ARRIVED}-{first_day}"),
        *write_frame(settled, root, CLIENTS, f"{SETTLED}-{first_day - timedelta(days=1)}"),
    ]
