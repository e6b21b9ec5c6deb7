"""The columns of the tables. Times are UTC microseconds; ``*_unix_nano`` keeps the nanoseconds of the client.

Every table is partitioned by the time when the host received the push, never by a value that clients control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TEXT: Final = pa.string()

IDENTITY: Final = (
    pa.field("client_instance_id", TEXT),
    pa.field("client_id", TEXT),
    pa.field("software_name", TEXT),
    pa.field("software_version", TEXT),
    pa.field("principal", TEXT),
    pa.field("listener", TEXT),
    pa.field("client_address", TEXT),
    pa.field("broker_id", pa.int32()),
)
"""The client that pushed; its instance id as Kafka prints it."""
SOURCE: Final = (pa.field("src_partition", pa.int32()), pa.field("src_offset", pa.int64()))
"""The record of the topic."""
DAY: Final = (pa.field("date", TEXT), pa.field("hour", pa.int32()))
"""``YYYY-MM-DD`` and hour of the receive time."""
FAMILY: Final = pa.field("family", TEXT)

SERIES: Final = (
    pa.field("name", TEXT),
    pa.field("unit", TEXT),
    pa.field("kind", pa.int8()),
    pa.field("temporality", pa.int8()),
)
LABELS: Final = (
    pa.field("attrs", TEXT),
    pa.field("topic", TEXT),
    pa.field("partition", TEXT),
    pa.field("node_id", TEXT),
    pa.field("resource", TEXT),
    pa.field("client_rack", TEXT),
    pa.field("group_id", TEXT),
    pa.field("group_instance_id", TEXT),
    pa.field("group_member_id", TEXT),
    pa.field("transactional_id", TEXT),
    pa.field("scope_name", TEXT),
    pa.field("scope_version", TEXT),
)
TIMES: Final = (
    pa.field("recv_ts", TIMESTAMP),
    pa.field("ts", TIMESTAMP),
    pa.field("client_ts", TIMESTAMP),
    pa.field("start_ts", TIMESTAMP),
    pa.field("time_unix_nano", pa.int64()),
    pa.field("start_unix_nano", pa.int64()),
)
DOUBLES, LONGS = pa.list_(pa.float64()), pa.list_(pa.int64())


@dataclass(frozen=True, slots=True)
class Table:
    """One table: its name, columns and partitions."""

    name: str
    schema: pa.Schema
    partitions: tuple[str, ...]
    time: str = "recv_ts"
    """The column that ``since`` and ``until`` compare with."""
    bucket_s: int = 0
    """The length of a bucket in seconds, if the rows are buckets of time."""
    added: tuple[str, ...] = ()
    """Columns that tables of older versions lack. The next commit adds them; they are null in older files."""

    @property
    def file_schema(self) -> pa.Schema:
        """The columns in the files: all but the partition columns."""
        return pa.schema([each for each in self.schema if each.name not in self.partitions])


POINTS: Final = Table(
    "points",
    pa.schema(
        [
            *IDENTITY,
            *TIMES,
            *SERIES,
            pa.field("monotonic", pa.bool_()),
            *LABELS,
            pa.field("value", pa.float64()),
            pa.field("value_int", pa.int64()),
            pa.field("flags", pa.int32()),
            pa.field("exemplars", TEXT),
            *SOURCE,
            pa.field("src_idx", pa.int32()),
            *DAY,
            FAMILY,
        ]
    ),
    ("date", "hour", "family"),
    time="ts",
)
HISTOGRAMS: Final = Table(
    "histograms",
    pa.schema(
        [
            *IDENTITY,
            *TIMES,
            *SERIES,
            *LABELS,
            pa.field("count", pa.int64()),
            pa.field("sum", pa.float64()),
            pa.field("min", pa.float64()),
            pa.field("max", pa.float64()),
            pa.field("bounds", DOUBLES),
            pa.field("counts", LONGS),
            pa.field("scale", pa.int32()),
            pa.field("zero_count", pa.int64()),
            pa.field("zero_threshold", pa.float64()),
            pa.field("pos_offset", pa.int32()),
            pa.field("neg_offset", pa.int32()),
            pa.field("pos_counts", LONGS),
            pa.field("neg_counts", LONGS),
            pa.field("quantiles", pa.list_(pa.struct([("q", pa.float64()), ("v", pa.float64())]))),
            pa.field("flags", pa.int32()),
            pa.field("exemplars", TEXT),
            *SOURCE,
            pa.field("src_idx", pa.int32()),
            *DAY,
            FAMILY,
        ]
    ),
    ("date", "hour", "family"),
    time="ts",
)
PUSHES: Final = Table(
    "pushes",
    pa.schema(
        [
            *IDENTITY,
            pa.field("recv_ts", TIMESTAMP),
            pa.field("payload_bytes", pa.int32()),
            pa.field("codec", TEXT),
            pa.field("points", pa.int32()),
            pa.field("subscription_id", pa.int32()),
            pa.field("push_interval_ms", pa.int32()),
            pa.field("terminating", pa.bool_()),
            pa.field("payload_hash", pa.int64()),
            pa.field("shape_id", pa.int64()),
            *SOURCE,
            pa.field("source", TEXT),
            pa.field("observed", pa.bool_()),
            pa.field("origin", TEXT),
            *DAY,
        ]
    ),
    ("date", "hour"),
    added=("source", "observed", "origin"),
)
DEAD_LETTER: Final = Table(
    "dead_letter",
    pa.schema(
        [
            pa.field("recv_ts", TIMESTAMP),
            pa.field("reason", TEXT),
            pa.field("bytes", pa.binary()),
            *SOURCE,
            DAY[0],
        ]
    ),
    ("date",),
)

GROUP: Final = (
    *SERIES,
    pa.field("client_id", TEXT),
    pa.field("software_name", TEXT),
    pa.field("software_version", TEXT),
    pa.field("client_rack", TEXT),
    pa.field("group_id", TEXT),
    pa.field("topic", TEXT),
    pa.field("node_id", TEXT),
    pa.field("broker_id", pa.int32()),
)
"""The columns by which a rollup groups."""
AGGREGATES: Final = (
    pa.field("n", pa.int64()),
    pa.field("not_finite", pa.int64()),
    pa.field("sum", pa.float64()),
    pa.field("min", pa.float64()),
    pa.field("max", pa.float64()),
    pa.field("last", pa.float64()),
    pa.field("last_ts", TIMESTAMP),
    pa.field("sum_int", pa.decimal128(38, 0)),
)
"""Aggregates of a group in a rollup; `odradek_spark.jobs.rollup.rollup` defines each."""
ROLLUP_5M: Final = Table(
    "rollup_5m",
    pa.schema(
        [pa.field("bucket", TIMESTAMP), *GROUP, *AGGREGATES, pa.field("instances", pa.binary()), DAY[0]]
    ),
    ("date",),
    time="bucket",
    bucket_s=300,
)
ROLLUP_1H: Final = Table(
    "rollup_1h",
    pa.schema(
        [pa.field("bucket", TIMESTAMP), pa.field("client_instance_id", TEXT), *GROUP, *AGGREGATES, DAY[0]]
    ),
    ("date",),
    time="bucket",
    bucket_s=3600,
)
FLEET_1H: Final = Table("fleet_1h", ROLLUP_5M.schema, ("date",), time="bucket", bucket_s=3600)
"""`ROLLUP_5M` by the hour."""
ROLLUPS: Final = (ROLLUP_5M, ROLLUP_1H, FLEET_1H)
CLIENTS: Final = Table(
    "clients",
    pa.schema(
        [
            *IDENTITY[:-1],
            pa.field("valid_from", TIMESTAMP),
            pa.field("valid_to", TIMESTAMP),
            pa.field("last_seen", TIMESTAMP),
            pa.field("pushes", pa.int64()),
            pa.field("points", pa.int64()),
            pa.field("push_interval_ms", pa.int32()),
            pa.field("terminated", pa.bool_()),
            pa.field("broker_id", pa.int32()),
            pa.field("source", TEXT),
            pa.field("observed", pa.bool_()),
            pa.field("ways", TEXT),
            pa.field("bucket", pa.int32()),
        ]
    ),
    ("bucket",),
    time="last_seen",
    added=("broker_id", "source", "observed", "ways"),
)
ANOMALIES: Final = Table(
    "anomalies",
    pa.schema(
        [
            pa.field("rule", TEXT),
            pa.field("client_instance_id", TEXT),
            pa.field("client_id", TEXT),
            pa.field("name", TEXT),
            pa.field("attrs", TEXT),
            pa.field("op", TEXT),
            pa.field("threshold", pa.float64()),
            pa.field("started_ts", TIMESTAMP),
            pa.field("fired_ts", TIMESTAMP),
            pa.field("last_ts", TIMESTAMP),
            pa.field("last_recv_ts", TIMESTAMP),
            pa.field("closed_ts", TIMESTAMP),
            pa.field("state", TEXT),
            pa.field("reason", TEXT),
            pa.field("samples", pa.int64()),
            pa.field("worst", pa.float64()),
            pa.field("last", pa.float64()),
            pa.field("push_interval_ms", pa.int32()),
            pa.field("software_name", TEXT),
            pa.field("software_version", TEXT),
            pa.field("principal", TEXT),
            pa.field("client_address", TEXT),
            pa.field("client_rack", TEXT),
            pa.field("group_id", TEXT),
            pa.field("clear", pa.float64()),
            pa.field("throttle_ms", pa.int64()),
            pa.field("delivered", TEXT),
            DAY[0],
        ]
    ),
    ("date",),
    time="started_ts",
    added=(
        "software_name",
        "software_version",
        "principal",
        "client_address",
        "client_rack",
        "group_id",
        "clear",
        "throttle_ms",
        "delivered",
    ),
)

ERASURES: Final = Table(
    "erasures",
    pa.schema(
        [
            pa.field("erased_ts", TIMESTAMP),
            pa.field("erased", TEXT),
            pa.field("value_sha256", TEXT),
            pa.field("rows", TEXT),
            pa.field("records", TEXT),
            DAY[0],
        ]
    ),
    ("date",),
    time="erased_ts",
)

INGESTED: Final = (POINTS, HISTOGRAMS, DEAD_LETTER, PUSHES)
"""The tables of ingest, in the order in which a batch commits: ``pushes`` last, it completes the batch."""
DERIVED: Final = (*ROLLUPS, CLIENTS, ANOMALIES, ERASURES)
"""The tables that jobs compute from those."""
BY_NAME: Final = {table.name: table for table in (*INGESTED, *DERIVED)}
