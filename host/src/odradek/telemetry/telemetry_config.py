"""What an operator may set about telemetry."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from odradek.metrics.metric_config import DEFAULT_CONFIG, MetricConfig


class ErrorPolicy(StrEnum):
    """Whose problem a failure behind the gate is (``telemetry.error.policy``)."""

    CLIENT_SAFE = "client-safe"
    """A plugin's failure is the host's own; a client hears only of what is wrong with its payload."""
    KAFKA = "kafka"
    """As Apache Kafka: the first plugin that raises ends the chain, and the client is told INVALID_RECORD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryConfig:
    """Bounds and policies of the manager."""

    telemetry_max_bytes: int = 1_048_576
    """Largest push as received (``telemetry.max.bytes``); with the Kafka policy, after decompression too."""
    max_decompressed_bytes: int = 16 * 1024 * 1024
    """Largest push after decompression with the client-safe policy: real payloads shrink 10 to 25 times."""
    error_policy: ErrorPolicy = ErrorPolicy.CLIENT_SAFE
    cache_size: int = 16_384
    """Client instances remembered (ClientMetricsManager.CACHE_MAX_SIZE)."""
    cache_expiry_ms: int = 60_000
    """An instance is forgotten after the longer of this and three push intervals of silence."""
    inline_bytes: int = 65_536
    """Payloads larger than this, raw, are not opened on the event loop."""
    max_resource_metrics: int = 10_000
    """ResourceMetrics in one payload. The Java client sends one for each of its few hundred metrics."""
    max_resources: int = 256
    """Different resources in one payload. Clients send one."""
    slow_ms: int = 5
    """A plugin's call that takes longer is counted as slow (``plugin.slow.ms``)."""
    metric_config: MetricConfig = DEFAULT_CONFIG
    """Windows of the broker metrics about telemetry."""

    @property
    def opened_max_bytes(self) -> int:
        """Largest push after decompression, under the policy in force."""
        if self.error_policy is ErrorPolicy.KAFKA:
            return self.telemetry_max_bytes
        return self.max_decompressed_bytes
