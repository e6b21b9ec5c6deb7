"""Times by the clock of this computer, for people."""

from __future__ import annotations

from datetime import datetime


def local(at: datetime) -> datetime:
    """A time by the clock of this computer, without its zone."""
    return at.astimezone().replace(tzinfo=None)


def zone(at: datetime) -> str:
    """The zone of this computer's clock: ``CET (UTC+01:00)``."""
    here = at.astimezone()
    name, offset = here.tzname() or "", f"UTC{here.isoformat()[-6:]}" if here.utcoffset() else "UTC"
    return name if name == offset else f"{name} ({offset})"


def clock(at: datetime) -> str:
    """The local date and time, to the minute."""
    return f"{local(at):%Y-%m-%d %H:%M}"


def span(start: datetime, end: datetime) -> str:
    """Two times; the day once if it is the same."""
    first, last = local(start), local(end)
    return f"{clock(start)} to {f'{last:%H:%M}' if first.date() == last.date() else clock(end)}"
