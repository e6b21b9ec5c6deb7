"""Panels about the host itself, from its own metrics (``host/docs/reference/metrics.md``)."""

from __future__ import annotations

from typing import Final

from contrib.grafana.panels import Panel, Query, Row


def rate(metric: str, legend: str, *by: str) -> Query:
    """A counter per second, by host and labels."""
    return Query(f"sum by ({', '.join(('instance', *by))}) (rate({metric}[2m]))", legend)


def increase(metric: str, legend: str, *by: str) -> Query:
    """A counter of rare events in the last hour."""
    return Query(f"sum by ({', '.join(('instance', *by))}) (increase({metric}[1h]))", legend)


def current(metric: str, legend: str, *by: str) -> Query:
    """The sum of a gauge, by host and labels."""
    return Query(f"sum by ({', '.join(('instance', *by))}) ({metric})", legend)


PUSHES: Final = [
    Panel(
        title="Pushes",
        queries=[
            rate("odradek_push_received_total", "received"),
            rate("odradek_push_appended_total", "stored"),
            rate("odradek_push_empty_total", "empty"),
        ],
        unit="1/s",
    ),
    Panel(
        title="Refused pushes",
        queries=[
            rate("odradek_push_rejected_total", "{{error}}", "error"),
            rate("odradek_push_kept_total", "{{error}}, but stored", "error"),
        ],
        unit="1/s",
        empty="no push was refused",
        description="UNKNOWN_SUBSCRIPTION_ID is usual after a change of subscriptions.",
    ),
    Panel(
        title="Lost increments",
        queries=[increase("odradek_push_lost_total", "{{error}} {{reason}}", "error", "reason")],
        unit="{push}",
        empty="no increment was lost",
        description="Refused pushes in the last hour whose metrics no other push will bring.",
    ),
    Panel(
        title="Client instances",
        queries=[current("kafka_server_client_metrics_instance_count", "{{instance}}")],
        unit="{instance}",
    ),
    Panel(
        title="Clients that are asked for fewer metrics",
        queries=[Query("count by (instance) (odradek_push_narrowed)", "{{instance}}")],
        unit="{instance}",
        empty="all clients push what was asked for",
    ),
    Panel(
        title="Pushes that could not be stored",
        queries=[increase("odradek_spool_refused_total", "{{reason}}", "reason")],
        unit="{push}",
        empty="all pushes were stored",
        description="In the last hour.",
    ),
]
DESTINATIONS: Final = [
    Panel(
        title="Pushes that wait for a destination",
        queries=[current("odradek_forwarder_queued", "{{plugin}}", "plugin")],
        unit="{push}",
        empty="no forwarder is installed",
    ),
    Panel(
        title="Delivered pushes",
        queries=[rate("odradek_forwarder_delivered_total", "{{plugin}}", "plugin")],
        unit="1/s",
        empty="no forwarder is installed",
    ),
    Panel(
        title="Pushes dropped or refused by a destination",
        queries=[
            increase("odradek_forwarder_dropped_total", "{{plugin}}: {{reason}}", "plugin", "reason"),
            increase("odradek_forwarder_rejected_total", "{{plugin}}: {{reason}}", "plugin", "reason"),
        ],
        unit="{push}",
        empty="every push was delivered",
        description="In the last hour.",
    ),
    Panel(
        title="Failures of plugins",
        queries=[
            increase("odradek_plugin_failures_total", "{{plugin}} raised", "plugin"),
            increase("odradek_plugin_dropped_total", "{{plugin}} missed", "plugin"),
        ],
        unit="{push}",
        description="In the last hour.",
    ),
    Panel(
        title="Slow calls of plugins",
        queries=[rate("odradek_plugin_slow_total", "{{plugin}}", "plugin")],
        unit="1/s",
        description="Each of them delays every client (plugin.slow.ms).",
    ),
]
LOAD: Final = [
    Panel(
        title="Connections",
        queries=[
            current("odradek_connections", "{{instance}}"),
            Query("max by (instance) (odradek_connections_limit)", "limit of {{instance}}"),
        ],
        unit="{connection}",
    ),
    Panel(
        title="Memory of requests and answers, as a share of its limit",
        queries=[Query("odradek_queued_bytes / odradek_queued_limit_bytes", "{{instance}} {{of}}")],
        unit="1",
        limit=0.9,
    ),
    Panel(
        title="Refused connections",
        queries=[
            increase("odradek_connections_refused_total", "malformed, {{listener}}", "listener"),
            increase(
                "kafka_server_socket_server_metrics_failed_authentication_total",
                "not authenticated, {{listener}}",
                "listener",
            ),
        ],
        unit="{connection}",
        empty="no connection was refused",
        description="In the last hour.",
    ),
    Panel(
        title="Throttled connections",
        queries=[
            current(f"kafka_server_{kind}_queue_size", kind) for kind in ("produce", "fetch", "request")
        ],
        unit="{connection}",
        description="Beside the clients' own throttle times. Quotas: howto/set-quotas.md.",
    ),
    Panel(
        title="Throttle time of clients",
        queries=[
            Query(
                f"topk(10, kafka_server_{kind}_throttle_time_milliseconds)",
                f"{kind} {{{{user}}}} {{{{client_id}}}}",
            )
            for kind in ("produce", "fetch", "request")
        ],
        unit="ms",
        empty="no client is throttled",
    ),
    Panel(
        title="Unexpected errors",
        queries=[increase("odradek_unexpected_errors_total", "{{instance}}")],
        unit="{error}",
        empty="none",
        description="In the last hour. Each is a bug: the host's log has a traceback.",
    ),
]
TOTALS: Final = [
    Panel(
        title="Share of time without increments",
        queries=[
            Query(
                "rate(odradek_temporality_gap_seconds_total[1h])"
                " / on (instance, plugin) odradek_temporality_series",
                "{{plugin}}",
            )
        ],
        unit="1",
        empty="no destination has totals",
        limit=0.01,
        description="Increments that clients forgot, because their push was refused or did not arrive.",
    ),
    Panel(
        title="Pushes and data points that are not in totals",
        queries=[
            increase("odradek_temporality_lost_records_total", "{{plugin}}: pushes deleted before", "plugin"),
            increase(
                "odradek_temporality_rejected_points_total",
                "{{plugin}}: points, {{reason}}",
                "plugin",
                "reason",
            ),
        ],
        unit="{point}",
        empty="everything is in the totals",
        description="In the last hour.",
    ),
    Panel(
        title="Series with totals",
        queries=[current("odradek_temporality_series", "{{plugin}}", "plugin")],
        unit="{series}",
        empty="no destination has totals",
    ),
    Panel(
        title="Client instances with totals",
        queries=[current("odradek_temporality_clients", "{{plugin}}", "plugin")],
        unit="{client}",
        empty="no destination has totals",
    ),
    Panel(
        title="Memory of totals",
        queries=[current("odradek_temporality_held_size_bytes", "{{plugin}}", "plugin")],
        unit="By",
        empty="no destination has totals",
    ),
    Panel(
        title="Time of a commit",
        queries=[
            Query(
                "rate(odradek_temporality_commit_time_seconds_total[2m])"
                " / rate(odradek_temporality_commits_total[2m])",
                "{{plugin}}",
            )
        ],
        unit="s",
        empty="no destination has totals",
        description="Mean of two minutes.",
    ),
]
SERIES: Final = [
    Panel(
        title="Used share of the budgets for series",
        queries=[
            Query(
                "max by (instance, plugin, budget) (odradek_cardinality_budget_ratio)",
                "{{plugin}} {{budget}}",
            )
        ],
        unit="1",
        empty="no destination has budgets",
        limit=0.8,
        description="Beyond a budget, further series are added up as other.",
    ),
    Panel(
        title="Series of the largest applications",
        queries=[
            Query(
                "topk(10, max by (plugin, principal, app) (odradek_cardinality_series))",
                "{{plugin}} {{principal}} {{app}}",
            )
        ],
        unit="{series}",
        empty="no destination has budgets",
        description="`odradek cardinality top` tells more.",
    ),
    Panel(
        title="Series over a budget",
        queries=[
            increase("odradek_cardinality_folded_total", "in other: {{budget}}", "plugin", "budget"),
            increase("odradek_cardinality_refused_total", "left out: {{budget}}", "plugin", "budget"),
        ],
        unit="{series}",
        empty="no series is over a budget",
        description="In the last hour.",
    ),
]
SHARE_GROUPS: Final = [
    Panel(
        title="Records of share groups",
        queries=[
            rate("odradek_share_acquired_total", "given to members"),
            rate("odradek_share_acknowledged_total", "{{type}}", "type"),
            rate("odradek_share_expired_total", "expired"),
        ],
        unit="1/s",
        empty="no share group reads",
        description="Given to members, and what they said. Of expired ones they said nothing in time.",
    ),
    Panel(
        title="Records in flight to share groups",
        queries=[current("odradek_share_in_flight", "{{instance}}")],
        unit="{record}",
        empty="no share group reads",
        description="A partition has at most share.partition.max.record.locks of them.",
    ),
    Panel(
        title="Records that share groups give up",
        queries=[
            increase("odradek_share_exhausted_total", "delivered too often"),
            increase("odradek_share_dead_letters_total", "dead letters {{outcome}}", "outcome"),
        ],
        unit="{record}",
        empty="no record was given up",
        description="In the last hour. Dead letters that are not written are in no topic.",
    ),
]
HOST_ROWS: Final = [
    Row("Pushes", PUSHES),
    Row("Plugins and destinations", DESTINATIONS),
    Row("Totals", TOTALS),
    Row("Budgets for series", SERIES),
    Row("Share groups", SHARE_GROUPS),
    Row("Load", LOAD),
]
