"""Client metrics as partitioned tables: Spark decodes a host's telemetry topic into a Delta dataset."""

from __future__ import annotations

from odradek.plugin import Companion, PluginConfig, hookimpl


@hookimpl
def odradek_companion(config: PluginConfig) -> Companion | None:
    """Run the pipeline beside the host if ``[plugins.spark]`` has a ``dataset``."""
    from odradek_spark.companion import read_pipeline  # imported here to keep hosts without it fast

    return read_pipeline(config)
