"""Times on the command line: a duration before now, or a date and time."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

AGO = re.compile(r"-?(\d+)([smhd])")
SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)
"""Times are clamped to these, which leaves room for arithmetic; no push is older or newer."""


class Moment(click.ParamType[datetime]):
    """``90s``, ``30m``, ``2h``, ``7d`` ago, or ``2026-05-17T10:00:00``, in UTC unless it has an offset."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        ago = AGO.fullmatch(value)
        if ago:
            now = datetime.now(UTC)
            seconds = min(int(ago[1]) * SECONDS[ago[2]], int((now - EARLIEST).total_seconds()))
            return now - timedelta(seconds=seconds)
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"expected 90s, 30m, 2h, 7d or YYYY-MM-DDThh:mm:ss, found {value!r}", param, ctx)
        return min(max(found if found.tzinfo else found.replace(tzinfo=UTC), EARLIEST), LATEST)
