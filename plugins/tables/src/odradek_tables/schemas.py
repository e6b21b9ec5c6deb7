"""The columns of the tables. Times are UTC microseconds; ``*_unix_nano`` keeps the nanoseconds of the client.

Every table is partitioned by the time when the host received the push, never by a value that clients control.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

TIMESTAMP: Final = pa.timestamp("us", tz="UTC")
TYPES: Final = {
    "timestamp": TIMESTAMP,
    "decimal": pa.decimal128(38, 0),
    "doubles": pa.list_(pa.float64()),
    "longs": pa.list_(pa.int64()),
    "quantiles": pa.list_(pa.struct([("q", pa.float64()), ("v", pa.float64())])),
}
"""The types for which Arrow has no name."""


def columns(text: str) -> tuple[pa.Field, ...]:
    """Columns from lines that each have a type and the names of its columns."""
    lines = (line.split() for line in text.strip().splitlines())
    return tuple(
        pa.field(name, TYPES.get(kind) or pa.type_for_alias(kind)) for kind, *names in lines for name in names
    )


IDENTITY: Final = columns("""
    string client_instance_id client_id software_name software_version principal listener client_address
    int32 broker_id
""")
"""The client that pushed; its instance id as Kafka prints it."""
SOURCE: Final = columns("""
    int32 src_partition
    int64 src_offset
""")
"""The record of the topic."""
DATE, HOUR = columns("""
    string date
    int32 hour
""")
"""``YYYY-MM-DD`` and hour of the receive time."""
SERIES: Final = columns("""
    string name unit
    int8 kind temporality
""")
LABELS: Final = columns("""
    string attrs topic partition node_id resource client_rack group_id group_instance_id group_member_id
    string transactional_id scope_name scope_version
""")
TIMES: Final = columns("""
    timestamp recv_ts ts client_ts start_ts
    int64 time_unix_nano start_unix_nano
""")
OF_POINT: Final = (*SOURCE, pa.field("src_idx", pa.int32()), DATE, HOUR, pa.field("family", pa.string()))


RANGED: Final = ("recv_ts", "ts", "src_offset")
"""Columns whose minimum and maximum are stored for each file, so that readers can skip files.

Every file of every version has them: a reader with a filter on a new one would skip the older files.
"""


@dataclass(frozen=True, slots=True)
class Table:
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
    def ranged(self) -> list[str]:
        """Those of `RANGED` that its files have."""
        return [name for name in RANGED if name in self.file_schema.names]

    @property
    def file_schema(self) -> pa.Schema:
        """The columns in the files: all but the partition columns."""
        return pa.schema([each for each in self.schema if each.name not in self.partitions])


POINT_FIELDS: Final = columns("""
    double value
    int64 value_int
    int32 flags
    string exemplars
""")
POINTS: Final = Table(
    "points",
    pa.schema(
        [*IDENTITY, *TIMES, *SERIES, pa.field("monotonic", pa.bool_()), *LABELS, *POINT_FIELDS, *OF_POINT]
    ),
    ("date", "hour", "family"),
    time="ts",
)
HISTOGRAM_FIELDS: Final = columns("""
    int64 count
    double sum min max
    doubles bounds
    longs counts
    int32 scale
    int64 zero_count
    double zero_threshold
    int32 pos_offset neg_offset
    longs pos_counts neg_counts
    quantiles quantiles
    int32 flags
    string exemplars
""")
HISTOGRAMS: Final = Table(
    "histograms",
    pa.schema([*IDENTITY, *TIMES, *SERIES, *LABELS, *HISTOGRAM_FIELDS, *OF_POINT]),
    ("date", "hour", "family"),
    time="ts",
)
PUSH_FIELDS: Final = columns("""
    timestamp recv_ts
    int32 payload_bytes
    string codec
    int32 points subscription_id push_interval_ms
    bool terminating
    int64 payload_hash shape_id
""")
PROVENANCE: Final = columns("""
    string source
    bool observed
    string origin
""")
PUSHES: Final = Table(
    "pushes",
    pa.schema([*IDENTITY, *PUSH_FIELDS, *SOURCE, *PROVENANCE, DATE, HOUR]),
    ("date", "hour"),
    added=("source", "observed", "origin"),
)
LETTER_FIELDS: Final = columns("""
    timestamp recv_ts
    string reason
    binary bytes
""")
DEAD_LETTER: Final = Table("dead_letter", pa.schema([*LETTER_FIELDS, *SOURCE, DATE]), ("date",))

BUCKET: Final = pa.field("bucket", TIMESTAMP)
GROUP: Final = SERIES + columns("""
    string client_id software_name software_version client_rack group_id topic node_id
    int32 broker_id
""")
"""The columns by which a rollup groups."""
AGGREGATES: Final = columns("""
    int64 n not_finite
    double sum min max last
    timestamp last_ts
    decimal sum_int
""")
"""Aggregates of a group in a rollup; `odradek_spark.jobs.rollup.rollup` defines each."""
ROLLUP_5M: Final = Table(
    "rollup_5m",
    pa.schema([BUCKET, *GROUP, *AGGREGATES, pa.field("instances", pa.binary()), DATE]),
    ("date",),
    time="bucket",
    bucket_s=300,
)
ROLLUP_1H: Final = Table(
    "rollup_1h",
    pa.schema([BUCKET, IDENTITY[0], *GROUP, *AGGREGATES, DATE]),
    ("date",),
    time="bucket",
    bucket_s=3600,
)
FLEET_1H: Final = Table("fleet_1h", ROLLUP_5M.schema, ("date",), time="bucket", bucket_s=3600)
"""`ROLLUP_5M` by the hour."""
ROLLUPS: Final = (ROLLUP_5M, ROLLUP_1H, FLEET_1H)
CLIENT_FIELDS: Final = columns("""
    timestamp valid_from valid_to last_seen
    int64 pushes points
    int32 push_interval_ms
    bool terminated
    int32 broker_id
    string source
    bool observed
    string ways
    int32 bucket
""")
CLIENTS: Final = Table(
    "clients",
    pa.schema([*IDENTITY[:-1], *CLIENT_FIELDS]),
    ("bucket",),
    time="last_seen",
    added=("broker_id", "source", "observed", "ways"),
)
EPISODE_FIELDS: Final = columns("""
    string rule client_instance_id client_id name attrs op
    double threshold
    timestamp started_ts fired_ts last_ts last_recv_ts closed_ts
    string state reason
    int64 samples
    double worst last
    int32 push_interval_ms
""")
ADDED_TO_EPISODES: Final = columns("""
    string software_name software_version principal client_address client_rack group_id
    double clear
    int64 throttle_ms
    string cause
""")
ANOMALIES: Final = Table(
    "anomalies",
    pa.schema([*EPISODE_FIELDS, *ADDED_TO_EPISODES, DATE]),
    ("date",),
    time="started_ts",
    added=tuple(each.name for each in ADDED_TO_EPISODES),
)
ERASURE_FIELDS: Final = columns("""
    timestamp erased_ts
    string erased value_sha256 rows records date
""")
ERASURES: Final = Table("erasures", pa.schema(ERASURE_FIELDS), ("date",), time="erased_ts")

INGESTED: Final = (POINTS, HISTOGRAMS, DEAD_LETTER, PUSHES)
"""The tables of ingest, in the order in which a batch commits: ``pushes`` last, it completes the batch."""
DERIVED: Final = (*ROLLUPS, CLIENTS, ANOMALIES, ERASURES)
"""The tables that jobs compute from those."""
BY_NAME: Final = {table.name: table for table in (*INGESTED, *DERIVED)}
