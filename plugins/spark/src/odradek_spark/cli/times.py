"""Moments on the command line: how long ago, or when."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import click

AGO = re.compile(r"-?(\d+)([smhd])")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


class Moment(click.ParamType[datetime]):
    """``90s``, ``30m``, ``2h``, ``7d`` ago, or ``2026-05-17T10:00:00``, of UTC unless an offset follows."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        ago = AGO.fullmatch(value)
        if ago:
            return datetime.now(UTC) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"expected 90s, 30m, 2h, 7d or YYYY-MM-DDThh:mm:ss, found {value!r}", param, ctx)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
