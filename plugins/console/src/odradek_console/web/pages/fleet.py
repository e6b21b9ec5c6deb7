"""The page of the fleet: the clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek_console.causes import Cause
from odradek_console.engine.client_entry import State
from odradek_console.figures import BYTES, FIGURES, NOT_PUSHED, RATE, RECORDS, marked
from odradek_console.links import client_link, programs_link
from odradek_console.overview import overview_of
from odradek_console.pictures import RANKS, worst_rank
from odradek_console.program_rows import problem_of, problems
from odradek_console.rows import ClientRow
from odradek_console.text import readable
from odradek_console.web.console import console_of
from odradek_console.web.render import page, picture, table_routes
from odradek_console.web.table import Column, Summary, Table, Value

NOTE: Final = (
    f"{NOT_PUSHED} not pushed by the client: observed by a gateway or a host, or the measured lag of groups. "
    "A latency is the 99th percentile (p99) if a gateway sees the client, else what its library reports."
)


HIDDEN: Final[Sequence[tuple[str, str, Callable[[ClientRow], Value]]]] = (
    ("group_id", "Group", lambda row: row.group_id),
    ("principal", "Principal", lambda row: row.principal),
    ("address", "Address", lambda row: row.address),
    ("node", "Node", lambda row: row.brokers),
    ("gateway", "Gateway", lambda row: row.gateway),
    ("cluster_id", "Cluster", lambda row: row.cluster_id),
    ("causes", "Causes", lambda row: row.causes),
    ("notes", "Notes", lambda row: row.notes),
    ("sources", "Told by", lambda row: row.sources),
    ("source", "Way in", lambda row: row.source),
    ("client_instance_id", "Instance", lambda row: row.client_instance_id),
    ("last_error", "Last error", lambda row: row.last_error),
)
"""Columns of texts that the page does not show, but that can be searched, filtered and exported."""
COUNTS: Final[Sequence[tuple[str, str, Callable[[ClientRow], Value]]]] = (
    ("pushes", "Pushes", lambda row: row.pushes),
    ("gaps", "Gaps", lambda row: row.gaps),
    ("refused", "Refused", lambda row: row.refused),
    ("payload_bytes", "Bytes of pushes", lambda row: row.payload_bytes),
    ("series", "Series", lambda row: row.series),
    ("interval_ms", "Interval", lambda row: row.interval_ms),
    ("first", "First push", lambda row: row.first_ms),
    ("last", "Last push", lambda row: row.last_ms),
)


def number(name: str, heading: str) -> Column[ClientRow]:
    """The column of a figure."""
    return Column(
        id=name,
        heading=heading,
        value=lambda row: row.figure(name),
        text=lambda row: marked(row.figures.get(name)),
        number=True,
    )


def total(
    name: str, unit: str, heading: str, unite: Callable[[list[float]], float] = sum
) -> Summary[ClientRow]:
    """A figure of several clients that are there."""

    def value(rows: Sequence[ClientRow]) -> float | None:
        values = [
            each for row in rows if row.state is not State.GONE and (each := row.figure(name)) is not None
        ]
        return unite(values) if values else None

    return Summary(id=name, heading=heading, value=value, text=lambda each: readable(each, unit))


def in_state(state: State) -> Summary[ClientRow]:
    """How many clients are in a state."""
    return Summary(
        id=str(state),
        heading=str(state).capitalize(),
        value=lambda rows: sum(row.state is state for row in rows),
    )


def worst(rows: Sequence[ClientRow]) -> str:
    """The worst finding of some clients; empty if they are well."""
    found = [each.id for row in rows for each in row.troubles if not each.is_shared]
    return min(found, key=lambda each: RANKS.get(each, len(RANKS)), default="")


CLIENTS: Final[Table[ClientRow]] = Table(
    name="clients",
    sort="-findings",
    row=ClientRow,
    usual=(("state", "!gone"),),
    summaries=(
        *(in_state(each) for each in State),
        Summary(id="worst", heading="Worst finding", value=worst, number=False),
        total("records", RATE, "Records"),
        total("bytes", BYTES, "Bytes"),
        total("lag", RECORDS, "Lag"),
        total("lag_s", "s", "Behind", max),
    ),
    columns=(
        Column(
            "client_id",
            "Client",
            text=lambda row: row.client_id or row.client_instance_id,
            link=lambda row: client_link(row.client_instance_id),
        ),
        Column("state", "State", value=lambda row: str(row.state), groups=True),
        Column(
            "findings",
            "Findings",
            text=lambda row: ", ".join(row.told),
            by=lambda row: -worst_rank(row),
            groups=True,
        ),
        *(number(name, heading) for name, heading in FIGURES.items()),
        Column("app", "Application", groups=True),
        Column("owner", "Team", groups=True),
        Column("software", "Library", value=lambda row: f"{row.software} {row.version}".strip(), groups=True),
        *(Column(name, heading, value=value, groups=True, shown=False) for name, heading, value in HIDDEN),
        *(Column(name, heading, value=value, number=True, shown=False) for name, heading, value in COUNTS),
    ),
)


CAUSES: Final[Table[Cause]] = Table(
    name="causes",
    sort="-count",
    row=Cause,
    columns=(
        Column("id", "Trouble", groups=True),
        Column("key", "In common", groups=True),
        Column("value", "Which"),
        Column("count", "Clients", value=lambda row: len(row.clients), number=True),
        Column("well", "Well", number=True),
        Column("since", "Since", value=lambda row: row.since_ms, number=True),
    ),
)
"""What most clients of a broker, a group or the like have."""


def fleet(request: Request) -> Response:
    """The overview, then the clients, those with findings first."""
    console = console_of(request)
    state = CLIENTS.state(request.query_params.multi_items())
    rows, causes = console.view.rows_and_causes()
    table = picture(CLIENTS, rows, state)
    return page(
        request,
        "fleet.html",
        table=table | {"note": NOTE},
        overview=overview_of(rows, console.history.changes(), console.now_ms()),
        causes=causes,
        ill=[
            (problem_of(some), programs_link([each.program for each in some]))
            for some in problems(console.programs.rows()).values()
        ],
        link=client_link,
        hours=console.view.sparklines([row.client_instance_id for row in table["chosen"]]),
    )


routes = [
    Route("/", fleet),
    *table_routes(CLIENTS, lambda console: console.view.clients()),
    *table_routes(CAUSES, lambda console: console.view.causes()),
]
