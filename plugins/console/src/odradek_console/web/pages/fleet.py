"""The page of the fleet: the clients."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek_console.causes import Cause
from odradek_console.rows import ClientRow
from odradek_console.web.console import console_of
from odradek_console.web.render import page, picture, table_routes, utc
from odradek_console.web.table import Column, Table


def client_link(row: ClientRow) -> str:
    """The page of a client."""
    return f"/clients/{quote(row.client_instance_id, safe='')}"


CLIENTS: Final[Table[ClientRow]] = Table(
    name="clients",
    sort="-findings",
    row=ClientRow,
    columns=(
        Column(
            id="client_id",
            heading="Client",
            value=lambda row: row.client_id,
            text=lambda row: row.client_id or row.client_instance_id,
            link=client_link,
        ),
        Column(id="state", heading="State", value=lambda row: str(row.state), groups=True),
        Column(id="findings", heading="Findings", value=lambda row: row.findings, groups=True),
        Column(id="causes", heading="Causes", value=lambda row: row.causes, groups=True),
        Column(id="notes", heading="Notes", value=lambda row: row.notes, groups=True),
        Column(
            id="software",
            heading="Library",
            value=lambda row: f"{row.software} {row.version}".strip(),
            groups=True,
        ),
        Column(id="principal", heading="Principal", value=lambda row: row.principal, groups=True),
        Column(id="app", heading="Application", value=lambda row: row.app, groups=True),
        Column(id="owner", heading="Team", value=lambda row: row.owner, groups=True),
        Column(id="group_id", heading="Group", value=lambda row: row.group_id, groups=True),
        Column(id="address", heading="Address", value=lambda row: row.address, groups=True),
        Column(id="pushes", heading="Pushes", value=lambda row: row.pushes, number=True),
        Column(
            id="last",
            heading="Last push",
            value=lambda row: row.last_ms,
            text=lambda row: utc(row.last_ms)[11:19],
            number=True,
        ),
        Column(
            id="client_instance_id",
            heading="Instance",
            value=lambda row: row.client_instance_id,
            shown=False,
        ),
        Column(id="gateway", heading="Gateway", value=lambda row: row.gateway, groups=True, shown=False),
        Column(id="node_id", heading="Broker", value=lambda row: row.node_id, groups=True, shown=False),
        Column(
            id="cluster_id", heading="Cluster", value=lambda row: row.cluster_id, groups=True, shown=False
        ),
        Column(id="source", heading="Way in", value=lambda row: row.source, groups=True, shown=False),
        Column(id="gaps", heading="Gaps", value=lambda row: row.gaps, number=True, shown=False),
        Column(id="refused", heading="Refused", value=lambda row: row.refused, number=True, shown=False),
        Column(id="last_error", heading="Last error", value=lambda row: row.last_error, shown=False),
        Column(
            id="payload_bytes", heading="Bytes", value=lambda row: row.payload_bytes, number=True, shown=False
        ),
        Column(id="series", heading="Series", value=lambda row: row.series, number=True, shown=False),
        Column(
            id="interval_ms", heading="Interval", value=lambda row: row.interval_ms, number=True, shown=False
        ),
        Column(id="first", heading="First push", value=lambda row: row.first_ms, number=True, shown=False),
    ),
)


CAUSES: Final[Table[Cause]] = Table(
    name="causes",
    sort="-count",
    row=Cause,
    columns=(
        Column(id="id", heading="Trouble", value=lambda row: row.id, groups=True),
        Column(id="key", heading="In common", value=lambda row: row.key, groups=True),
        Column(id="value", heading="Which", value=lambda row: row.value),
        Column(id="count", heading="Clients", value=lambda row: len(row.clients), number=True),
        Column(id="well", heading="Well", value=lambda row: row.well, number=True),
        Column(id="since", heading="Since", value=lambda row: row.since_ms, number=True),
    ),
)
"""What most clients of a broker, a group or the like have."""


def fleet(request: Request) -> Response:
    """The causes, then the clients, those with findings first."""
    state = CLIENTS.state(request.query_params.multi_items())
    rows = console_of(request).view.clients()
    causes = dict.fromkeys(cause for row in rows for cause in row.causes)
    counts = {
        "clients": len(rows),
        "live": sum(row.state == "live" for row in rows),
        "silent": sum(row.state == "silent" for row in rows),
        "with findings": sum(bool(row.findings) for row in rows),
    }
    return page(request, "fleet.html", table=picture(CLIENTS, rows, state), counts=counts, causes=causes)


routes = [
    Route("/", fleet),
    *table_routes(CLIENTS, lambda console: console.view.clients()),
    *table_routes(CAUSES, lambda console: console.view.causes()),
]
