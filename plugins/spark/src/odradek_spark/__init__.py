"""Client metrics as partitioned tables: Spark decodes a host's telemetry topic into a Delta dataset."""

from __future__ import annotations

from odradek.plugin import Companion, PluginConfig, hookimpl

__version__ = "0.1.0"


@hookimpl
def odradek_companion(config: PluginConfig) -> Companion | None:
    """``[plugins.spark]`` with a ``dataset`` runs the pipeline beside the host."""
    from odradek_spark.companion import read_pipeline  # a host without the table does not pay for it

    return read_pipeline(config)
