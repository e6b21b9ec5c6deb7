"""The pages of gateways and hosts: whether each is up, what it holds, and how its destinations do."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek_console.engine.client_entry import State as ClientState
from odradek_console.links import program_link
from odradek_console.program_rows import DestinationRow, ProgramRow
from odradek_console.text import duration, readable
from odradek_console.web.console import Console, console_of
from odradek_console.web.render import page, picture, table_routes
from odradek_console.web.table import Column, State, Table, measure

UNNAMED: Final = "not asked: name its metrics.listener with --program"
DESTINATIONS: Final[Table[DestinationRow]] = Table(
    name="destinations",
    sort="health",
    row=DestinationRow,
    columns=(
        Column("name", "Gateway or host", link=lambda row: program_link(row.program), groups=True),
        Column("destination", "Destination", groups=True),
        Column(
            "health",
            "Health",
            text=lambda row: f"lost for {duration(row.still_s)}" if row.still_s else row.health,
            groups=True,
        ),
        Column("error", "Last error", groups=True),
        measure("waiting", "Waiting pushes", ""),
        measure("per_s", "Takes now", "/s"),
        measure("done_s", "Caught up in", "s"),
        measure("delivered", "Delivered", ""),
        measure("given_up", "Given up", ""),
        Column("program", "Metrics", groups=True, shown=False),
    ),
)
PROGRAMS: Final[Table[ProgramRow]] = Table(
    name="programs",
    sort="-problem",
    row=ProgramRow,
    columns=(
        Column(
            "name",
            "Name",
            text=lambda row: row.who,
            link=lambda row: program_link(row.program) or f"/?gateway={quote(row.name)}",
        ),
        Column("kind", "Kind", groups=True),
        Column("state", "State", groups=True),
        Column("lost", "Lost destinations", groups=True),
        measure("waiting", "Waiting pushes", ""),
        measure("connections", "Connections", ""),
        Column(
            "clients",
            "Live clients",
            text=lambda row: f"{readable(row.clients, '')}{' (shared)' if row.is_shared else ''}",
            number=True,
        ),
        measure("memory", "Memory", "By", lambda row: row.memory_bytes),
        measure("uptime", "Up for", "s", lambda row: row.uptime_s),
        Column("version", "Version", groups=True),
        Column("switch", "Kill switch", groups=True),
        Column("program", "Metrics", shown=False),
        Column("problem", "Problem", shown=False),
    ),
)


def all_programs(console: Console) -> list[ProgramRow]:
    """Those whose metrics are read, and the gateways that only their clients name."""
    live = Counter(row.gateway for row in console.view.clients() if row.state is ClientState.LIVE)
    rows = [
        replace(each, clients=sum(live[name] for name in each.gateways)) if each.gateways else each
        for each in console.programs.rows()
    ]
    asked = {name for each in rows for name in each.gateways}
    unnamed = [
        ProgramRow(program="", name=name, kind="gateway", state=UNNAMED, gateways=(name,), clients=count)
        for name, count in sorted(live.items())
        if name and name not in asked
    ]
    return rows + unnamed


def destinations_of(console: Console, program: str = "") -> dict[str, Any]:
    """The destinations of all programs, or of one, as a page shows them."""
    rows = [each for each in console.programs.destinations() if program in ("", each.program)]
    table = replace(DESTINATIONS, columns=DESTINATIONS.columns[1:]) if program else DESTINATIONS
    return picture(table, rows, State(sort="health"))


def programs(request: Request) -> Response:
    """All of them, what is wrong first."""
    console, state = console_of(request), PROGRAMS.state(request.query_params.multi_items())
    table = picture(PROGRAMS, all_programs(console), state)
    return page(request, "programs.html", table=table, is_named=bool(console.programs.programs))


def program(request: Request) -> Response:
    """One with its destinations.

    Raises:
        HTTPException: 404, no program with this address was named.
    """
    console, url = console_of(request), "{scheme}://{address}".format(**request.path_params)
    row = next((each for each in all_programs(console) if each.program == url), None)
    if row is None:
        raise HTTPException(404, f"No --program of this console has the address {url}.")
    return page(
        request,
        "program.html",
        row=row,
        link=program_link,
        destinations=destinations_of(console, row.program),
    )


routes = [
    Route("/programs", programs),
    Route("/programs/{scheme}/{address:path}", program, name="a gateway or a host"),
    *table_routes(PROGRAMS, all_programs),
    *table_routes(DESTINATIONS, lambda console: console.programs.destinations()),
]
