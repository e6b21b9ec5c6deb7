"""Temporality: from the delta values that clients push to cumulative ones, exactly.

The state machines read no clock and no file; `state_file` and `rebuild` keep their state in one. Plugins may
import this room; names that need protobuf's messages are loaded on first use.

The settings of a forwarder whose destination wants totals; `CumulativeForwarder` makes them:

>>> from odradek.plugin import PluginConfig
>>> from odradek.temporality import read_cumulative
>>> read_cumulative(PluginConfig("plugins.mine", {"totals.max.series": 1000})).limits.max_streams
1000
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.bounds.first_use import on_first_use
from odradek.temporality.counts import Counts, Limits, Rejection
from odradek.temporality.totals_figures import TotalsFigures
from odradek.temporality.totals_settings import TotalsSettings, read_cumulative, read_totals
from odradek.temporality.totals_store import KeepsTotals, StoreFailed, TotalsStore

if TYPE_CHECKING:
    from odradek.temporality.clients import Changes
    from odradek.temporality.cumulative_forwarder import CumulativeForwarder
    from odradek.temporality.engine import Engine, Series
    from odradek.temporality.shape import BadState
    from odradek.temporality.state_file import StateFile
    from odradek.temporality.stream_key import Identity, Kind

__all__ = [
    "BadState",
    "Changes",
    "Counts",
    "CumulativeForwarder",
    "Engine",
    "Identity",
    "KeepsTotals",
    "Kind",
    "Limits",
    "Rejection",
    "Series",
    "StateFile",
    "StoreFailed",
    "TotalsFigures",
    "TotalsSettings",
    "TotalsStore",
    "read_cumulative",
    "read_totals",
]

# The module of each name that needs protobuf's messages or SQLite.
__getattr__ = on_first_use(
    __name__,
    shape="BadState",
    clients="Changes",
    cumulative_forwarder="CumulativeForwarder",
    engine="Engine Series",
    stream_key="Identity Kind",
    state_file="StateFile",
)
