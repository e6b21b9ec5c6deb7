"""Client metrics as tables of Spark: ``format("odradek")`` is source and sink; functions make DataFrames.

Every host imports this package, so Spark is imported only by what uses it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from odradek.plugin import Companion, PluginConfig, hookimpl

if TYPE_CHECKING:
    from odradek_spark.frames import dead_letter, histograms, points, pushes
    from odradek_spark.jobs.accepted import accepted, counted
    from odradek_spark.jobs.detect import detect, samples
    from odradek_spark.jobs.inventory import inventory
    from odradek_spark.jobs.lag import lag
    from odradek_spark.jobs.rollup import rollup
    from odradek_spark.jobs.silence import silent
    from odradek_spark.jobs.verify import verify

__all__ = [
    "accepted",
    "counted",
    "dead_letter",
    "detect",
    "histograms",
    "inventory",
    "lag",
    "odradek_companion",
    "points",
    "pushes",
    "rollup",
    "samples",
    "silent",
    "verify",
]
ELSEWHERE = {
    "counted": "jobs.accepted",
    "dead_letter": "frames",
    "histograms": "frames",
    "points": "frames",
    "pushes": "frames",
    "samples": "jobs.detect",
    "silent": "jobs.silence",
}
"""By function: its module, unless that has its name."""


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module(f"odradek_spark.{ELSEWHERE.get(name, f'jobs.{name}')}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@hookimpl
def odradek_companion(config: PluginConfig) -> Companion | None:
    """Run the pipeline beside the host if ``[plugins.spark]`` has a ``dataset``."""
    if config.value("dataset") is None and not config.values:
        return None
    from odradek_spark.companion import read_pipeline  # imported here to keep hosts without it fast

    return read_pipeline(config)
