"""Client metrics as tables of Spark: ``format("odradek")`` is source and sink, `points` decodes a DataFrame.

Every host imports this package, so Spark is imported only by what uses it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from odradek.plugin import Companion, PluginConfig, hookimpl

if TYPE_CHECKING:
    from odradek_spark.frames import dead_letter, histograms, points, pushes

__all__ = ["dead_letter", "histograms", "odradek_companion", "points", "pushes"]


def __getattr__(name: str) -> object:
    if name in __all__:
        return getattr(import_module("odradek_spark.frames"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@hookimpl
def odradek_companion(config: PluginConfig) -> Companion | None:
    """Run the pipeline beside the host if ``[plugins.spark]`` has a ``dataset``."""
    from odradek_spark.companion import read_pipeline  # imported here to keep hosts without it fast

    return read_pipeline(config)
