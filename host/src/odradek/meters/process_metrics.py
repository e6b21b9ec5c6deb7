"""The metrics of a process, with the names that OpenTelemetry's semantic conventions give them."""

from __future__ import annotations

from odradek.metrics.metric import Metrics
from odradek.process.freed_memory import STATM, resident_bytes

PROCESS = Metrics[float]("process")
"""Of the seconds since its start."""
PROCESS.gauge("uptime", "s", "Time since the start of the process", lambda up_s: up_s)
PROCESS.gauge(
    "memory.usage",
    "By",
    "Physical memory of the process",
    lambda _: float(resident_bytes()) if STATM.exists() else None,
)
