"""Settings of telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.bounds.bounded_regex import RegexBounds
from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig
from odradek.settings.kinds import INT, Choice, Flag, Whole
from odradek.settings.setting import setting
from odradek.telemetry.client_metrics_configs import MATCH_BOUNDS, MAX_LENGTH_KEY


class ErrorPolicy(StrEnum):
    """The report of a failure after the checks of a push (``telemetry.error.policy``)."""

    CLIENT_SAFE = "client-safe"
    """A plugin's failure stays in the host; a client only gets errors about its payload."""
    KAFKA = "kafka"
    """As Apache Kafka: the first plugin that raises ends the chain, and the client gets INVALID_RECORD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """Limits and policies of the telemetry manager."""

    # fmt: off
    telemetry_max_bytes: int = setting(
        "telemetry.max.bytes", Whole(INT, 1), 1_048_576,
        "Largest push as received; with `telemetry.error.policy=kafka` also the largest after "
        "decompression.", unit="bytes",
    )
    max_decompressed_bytes: int = setting(
        "telemetry.max.decompressed.bytes", Whole(INT, 1), 16 * 1024 * 1024,
        "Largest push after decompression; used with `telemetry.error.policy=client-safe`.", unit="bytes",
    )
    """Real payloads shrink 10 to 25 times."""
    error_policy: ErrorPolicy = setting(
        "telemetry.error.policy", Choice({each.value: each for each in ErrorPolicy}), ErrorPolicy.CLIENT_SAFE,
        "Whether a failure after the checks of a push is reported to the operator only (`client-safe`), or "
        "to the client as in Apache Kafka (`kafka`).", page="errors.md",
    )
    delta_temporality: bool = setting(
        "telemetry.delta.temporality", Flag(), True,
        "Whether clients are asked for deltas, as Kafka's brokers do; `false`: for totals. Clients learn it "
        "when they ask for their subscription: at their start, or after it has changed.",
        page="../explanation/temporality.md",
    )
    keep_unknown_subscription: bool = setting(
        "telemetry.keep.unknown.subscription", Flag(), True,
        "Whether a push that is refused with UNKNOWN_SUBSCRIPTION_ID is stored all the same: its client "
        "sends these metrics only once.", page="../explanation/temporality.md",
    )
    keep_byte_rate: int = setting(
        "telemetry.keep.byte.rate", Whole(INT), 0,
        "Bytes per second, decompressed, of pushes that are refused with THROTTLING_QUOTA_EXCEEDED or "
        "TELEMETRY_TOO_LARGE and stored all the same; a minute's worth may come at once. `0`: none is "
        "stored.",
        unit="bytes", page="../explanation/temporality.md",
    )
    cache_size: int = setting(
        "telemetry.client.instances.max", Whole(INT, 1), 16_384,
        "Client instances that are remembered; beyond this number the least recently used one is forgotten.",
        unit="instances",
    )
    """ClientMetricsManager.CACHE_MAX_SIZE in Kafka, a constant there."""
    cache_expiry_ms: int = 60_000
    """An instance is forgotten after the longer of this and three push intervals of silence."""
    max_subscriptions: int = setting(
        "telemetry.subscriptions.max", Whole(INT, 1), 1_000,
        "Most subscriptions; each is matched when a client asks for its subscription.", unit="subscriptions",
    )
    match_max_length: int = setting(
        MAX_LENGTH_KEY, Whole(INT, 1), MATCH_BOUNDS.max_length,
        "Longest `match` of a subscription; beyond it INVALID_CONFIG.", unit="characters",
    )
    match_max_steps: int = setting(
        "telemetry.match.max.steps", Whole(INT, 1), MATCH_BOUNDS.max_steps,
        "Most steps of the compiled patterns of all subscriptions together; `producer-.*` has 22. Matching a "
        "client takes time in proportion to them.", unit="steps",
    )
    max_metrics: int = setting(
        "telemetry.metrics.max", Whole(INT, 1), 4_000,
        "Most prefixes of metric names of all subscriptions together; a client may get them all.",
        unit="prefixes",
    )
    narrow_too_large: bool = setting(
        "telemetry.too.large.narrow", Flag(), True,
        "Whether a client whose pushes are too large is asked for fewer metrics until they fit; never with "
        "`telemetry.error.policy=kafka`.", page="errors.md",
    )
    widen_after_ms: int = setting(
        "telemetry.too.large.widen.ms", Whole(INT, 1_000), 3_600_000,
        "How long the pushes of such a client must fit before it is asked for more metrics; each further "
        "attempt waits twice as long, up to a day.", unit="ms",
    )
    incidents: int = setting(
        "telemetry.incidents.series.max", Whole(INT), 1_000,
        "Series of failed logins, errors of topics, throttle times and other incidents of clients in the "
        "last minute; beyond it they are only counted. `0`: no incident is told.",
        unit="series", page="observed-metrics.md#incidents",
    )
    inline_bytes: int = setting(
        "telemetry.inline.bytes", Whole(INT), 65_536,
        "Payloads whose decompressed size exceeds this are opened by a worker process.", unit="bytes",
    )
    max_resource_metrics: int = 10_000
    """Limit of ResourceMetrics in one payload. The Java client sends one per metric, a few hundred."""
    max_resources: int = 256
    """Limit of different resources in one payload. Clients send one."""
    slow_ms: int = setting(
        "plugin.slow.ms", Whole(INT, 1, 60_000), 5,
        "A plugin call on the event loop that takes longer than this is slow: it is counted, and logged once "
        "a minute.", unit="ms",
    )
    slow_limit: int = setting(
        "plugin.slow.limit", Whole(INT), 200,
        "How many times `plugin.slow.ms` the slow calls of one minute may take before a receiver or exporter "
        "is moved from the event loop to a thread of its own; `0`: it stays.",
    )
    labels_wait_ms: int = setting(
        "plugin.labels.wait.ms", Whole(INT, 0, 60_000), 100,
        "How long a push waits for labels that an enricher finds later; then it goes on with those that are "
        "known, and `labels_missing` names the plugins whose labels are missing.",
        unit="ms",
    )
    thread_queue_max_bytes: int = setting(
        "plugin.thread.queue.max.bytes", Whole(INT, 1), 16 << 20,
        "Largest size of the pushes that wait for a plugin with a thread of its own; further pushes are not "
        "given to it.", unit="bytes",
    )
    metric_config: MetricConfig = DEFAULT_CONFIG
    """Windows of the broker metrics about telemetry."""
    # fmt: on

    @property
    def match_bounds(self) -> RegexBounds:
        """The limits of a new `match`."""
        return RegexBounds(self.match_max_length, self.match_max_steps)

    @property
    def opened_max_bytes(self) -> int:
        """Largest push after decompression with the configured error policy, in bytes."""
        if self.error_policy is ErrorPolicy.KAFKA:
            return self.telemetry_max_bytes
        return self.max_decompressed_bytes
