"""The page of changes: deploys and what they have done, restarts, subscriptions."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek_console.effects import EventRow
from odradek_console.web.console import Console, console_of
from odradek_console.web.render import page, picture, table_routes, utc
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


def events(request: Request) -> Response:
    """All changes, the newest first."""
    state = EVENTS.state(request.query_params.multi_items())
    return page(request, "events.html", table=picture(EVENTS, all_events(console_of(request)), state))


routes = [Route("/history", events), *table_routes(EVENTS, all_events)]
