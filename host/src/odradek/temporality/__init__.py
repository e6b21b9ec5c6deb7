"""Temporality: from the delta values that clients push to cumulative ones, exactly.

Pure state machines: no files, no clock. Plugins may import this room.
"""

from odradek.temporality.clients import Changes
from odradek.temporality.counts import Counts, Limits, Rejection
from odradek.temporality.engine import Engine, Series
from odradek.temporality.shape import BadState
from odradek.temporality.stream_key import Identity, Kind

__all__ = ["BadState", "Changes", "Counts", "Engine", "Identity", "Kind", "Limits", "Rejection", "Series"]
