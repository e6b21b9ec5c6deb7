"""Panels about consumer groups, from the metrics of lag (``host/docs/reference/lag-metrics.md``)."""

from __future__ import annotations

from typing import Final

from contrib.grafana.panels import Panel, Query, Row

MOST: Final = 10
CHOSEN: Final = 'group=~"$group"'
MEMBER: Final = (
    "on (cluster_name, group, topic, partition) group_left (client_id, address) odradek_group_member"
)


def worst(metric: str, legend: str) -> Query:
    """The largest values."""
    return Query(f"topk({MOST}, {metric})", legend)


ALL: Final = [
    Panel(
        title="Groups by progress",
        queries=[Query("count by (progress) (odradek_group_progress)", "{{progress}}")],
        unit="{topic}",
        empty="no group reads a topic",
        description="Topics of groups. Stalled and falling behind need a look.",
    ),
    Panel(
        title="Longest lag in time",
        queries=[worst("odradek_group_lag_time_max_seconds", "{{group}}")],
        unit="s",
        empty="no group has a lag",
        description="The age of the oldest record that a group has not read.",
    ),
    Panel(
        title="Largest lag in records",
        queries=[worst("odradek_group_lag_sum", "{{group}}")],
        unit="{record}",
        empty="no group has offsets",
    ),
    Panel(
        title="Next unread records to be deleted",
        queries=[Query(f"bottomk({MOST}, odradek_group_retention_left_seconds)", "{{group}} {{topic}}")],
        unit="s",
        empty="no group has a lag",
        description="The time until retention.ms deletes records that a group has not read.",
    ),
    Panel(
        title="Lost records",
        queries=[Query("sum by (group, topic) (odradek_group_lost)", "{{group}} {{topic}}")],
        unit="{record}",
        empty="no group has lost records",
        description="Records that were deleted before the group read them.",
    ),
    Panel(
        title="Assigned partitions without an offset",
        queries=[Query("odradek_group_uncommitted > 0", "{{group}} {{topic}}")],
        unit="{partition}",
        empty="every assigned partition has an offset",
    ),
]
GROUP: Final = [
    Panel(
        title="Lag in time by topic",
        queries=[Query(f"odradek_group_topic_lag_time_max_seconds{{{CHOSEN}}}", "{{group}} {{topic}}")],
        unit="s",
        empty="the group has no lag",
    ),
    Panel(
        title="Lag in records by topic",
        queries=[Query(f"odradek_group_topic_lag_sum{{{CHOSEN}}}", "{{group}} {{topic}}")],
        unit="{record}",
        empty="the group has no offsets",
    ),
    Panel(
        title="Growth of the lag",
        queries=[Query(f"odradek_group_lag_rate_per_second{{{CHOSEN}}}", "{{group}} {{topic}}")],
        unit="1/s",
        empty="the group has no offsets",
        description="Records per second; below 0 while the group catches up.",
    ),
    Panel(
        title="Time until the group has caught up",
        queries=[Query(f"odradek_group_catch_up_time_seconds{{{CHOSEN}}}", "{{group}} {{topic}}")],
        unit="s",
        empty="the group does not catch up",
    ),
    Panel(
        title="Members",
        queries=[Query(f"odradek_group_members{{{CHOSEN}}}", "{{group}}")],
        unit="{member}",
        empty="the group does not exist",
    ),
    Panel(
        title="Who is behind on which partition",
        queries=[
            Query(
                f"topk({MOST}, odradek_group_lag_time_seconds{{{CHOSEN}}} * {MEMBER})",
                "{{client_id}} {{address}} {{topic}} {{partition}}",
            )
        ],
        unit="s",
        empty="no member is behind",
    ),
]
CLIENTS: Final = [
    Panel(
        title="Clients by lag in time",
        queries=[worst("odradek_client_lag_time_max_seconds", "{{client_id}} {{client_address}} {{group}}")],
        unit="s",
        empty="no client is behind, or clients are not measured",
        description="Also of clients that commit no offsets. Needs telemetry.lag or gateway.lag = all.",
    ),
    Panel(
        title="Clients by lag in records",
        queries=[worst("odradek_client_lag_sum", "{{client_id}} {{client_address}} {{group}}")],
        unit="{record}",
        empty="clients are not measured",
    ),
    Panel(
        title="Clients that do not fetch",
        queries=[
            worst(
                "odradek_client_fetch_age_seconds > 60",
                "{{client_id}} {{client_address}} {{topic}} {{partition}}",
            )
        ],
        unit="s",
        empty="every client fetches",
        description="They have paused, or are busy with what they have fetched.",
    ),
]
TOPICS: Final = [
    Panel(
        title="Hot partitions",
        queries=[worst("odradek_partition_hot_ratio", "{{topic}} {{partition}}")],
        unit="{share}",
        empty="no partition gets twice its share",
        description="How many times its even share of the topic's new records a partition got.",
        width=12,
    ),
    Panel(
        title="Partitions with most new records",
        queries=[worst("deriv(odradek_partition_end_offset[10m])", "{{topic}} {{partition}}")],
        unit="1/s",
        empty="no group reads a topic",
        width=12,
    ),
]
GROUP_ROWS: Final = [
    Row("All groups", ALL),
    Row("The chosen groups", GROUP),
    Row("Clients", CLIENTS),
    Row("Topics", TOPICS),
]
