"""Client metrics as partitioned tables: Spark decodes a host's telemetry topic into a Delta dataset."""

from __future__ import annotations

__version__ = "0.1.0"
