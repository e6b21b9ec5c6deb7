"""The default retention of each table.

Every host with this plugin reads it at the start, so nothing here imports the libraries of tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

KEPT_DAYS: Final[Mapping[str, int]] = {
    "points": 7,
    "histograms": 7,
    "dead_letter": 7,
    "pushes": 7,
    "rollup_5m": 30,
    "rollup_1h": 35,
    "fleet_1h": 400,
    "clients": 90,
    "anomalies": 400,
}
"""Default retention in days, by table."""
