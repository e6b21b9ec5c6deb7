"""How accepted pushes are kept: in which topic, for how long, and when their clients are answered."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DEAD_LETTER_SUFFIX = "_dead_letter"


class Durability(StrEnum):
    """What a client may rely on when its push is answered (``telemetry.durability``)."""

    MEMORY = "memory"
    """Receivers and forwarders have been given it; nothing is written."""
    LOG = "log"
    """It is in the log: the end of the process does not lose it."""
    FSYNC = "fsync"
    """It is on the disk: the end of the machine does not lose it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolSettings:
    """How accepted pushes are kept."""

    durability: Durability = Durability.LOG
    topic_name: str = "__client_telemetry"
    partitions: int = 1
    linger_ms: int = 20
    """How long a push may wait for others, to be written and answered with them."""
    buffer_max_bytes: int = 64 << 20
    """Of pushes that wait for the log; more are refused."""
    log_max_bytes: int = -1
    """Of the topic on the disk; pushes are refused while it has as many. -1 is no limit."""
    retention_ms: int | None = None
    """None leaves it to ``log.retention.ms``, or to what was set on the topic."""
    retention_bytes: int | None = None

    @property
    def dead_letter_topic(self) -> str:
        """Where records go that no far side takes."""
        return self.topic_name + DEAD_LETTER_SUFFIX
