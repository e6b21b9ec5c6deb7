"""The page of changes: deploys and what they have done, restarts, subscriptions."""

from __future__ import annotations

from typing import Final

from odradek_console.effects import EventRow
from odradek_console.web.console import Console
from odradek_console.web.render import table_page, utc
from odradek_console.web.table import Column, Table

EVENTS: Final[Table[EventRow]] = Table(
    name="events",
    sort="-time",
    row=EventRow,
    columns=(
        Column("time", "Time", value=lambda each: each.row.time_ms, text=lambda each: utc(each.row.time_ms)),
        Column("text", "Change", value=lambda each: each.row.text, link=lambda each: each.row.link),
        Column("changed", "Since then"),
        Column("same", "As before"),
        Column("app", "Application", value=lambda each: each.row.app or "", groups=True),
    ),
)


def all_events(console: Console) -> list[EventRow]:
    """All changes that the console remembers."""
    return console.view.events(list(console.history.changes()))


routes = table_page("/history", "events.html", EVENTS, all_events)
