"""Temporality: from the delta values that clients push to cumulative ones, exactly.

The state machines read no clock and no file; `state_file` and `rebuild` keep their state in one. Plugins may
import this room; names that need protobuf's messages are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

ON_FIRST_USE = {
    "BadState": "shape",
    "Changes": "clients",
    "CumulativeForwarder": "cumulative_forwarder",
    "Engine": "engine",
    "Identity": "stream_key",
    "Kind": "stream_key",
    "Series": "engine",
    "StateFile": "state_file",
}
"""The module of each name that needs protobuf's messages or SQLite."""


def __getattr__(name: str) -> Any:
    if name not in ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{ON_FIRST_USE[name]}"), name)
