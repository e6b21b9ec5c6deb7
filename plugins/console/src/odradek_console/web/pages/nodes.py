"""The pages of brokers: who suffers on which one."""

from __future__ import annotations

from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek.client.errors import ClientError
from odradek_console.cluster_rows import BrokerRow
from odradek_console.links import client_link, node_link
from odradek_console.node_pictures import NodeRow, SuffererRow, node_rows
from odradek_console.web.console import Console, console_of
from odradek_console.web.render import page, picture, table_page, table_routes
from odradek_console.web.table import Column, Table, measure

NODES: Final[Table[NodeRow]] = Table(
    name="nodes",
    sort="-median",
    row=NodeRow,
    columns=(
        Column("node", "Node", link=lambda row: node_link(row.node), by=lambda row: int(row.node)),
        Column("address", "Address"),
        Column("findings", "Findings", groups=True),
        measure("median", "Median latency", "ms", lambda row: row.median_ms),
        measure("largest", "Largest", "ms", lambda row: row.largest_ms),
        Column("clients", "Clients", number=True),
        Column("slow", "Above 1 s", number=True),
    ),
)
SUFFERERS: Final[Table[SuffererRow]] = Table(
    name="sufferers",
    sort="-average",
    row=SuffererRow,
    columns=(
        Column(
            "client_id",
            "Client",
            value=lambda row: row.row.client_id,
            text=lambda row: row.row.client_id or row.row.client_instance_id,
            link=lambda row: client_link(row.row.client_instance_id),
        ),
        Column("state", "State", value=lambda row: str(row.row.state), groups=True),
        Column("findings", "Findings", value=lambda row: row.row.findings, groups=True),
        measure("average", "Average latency", "ms", lambda row: row.average_ms),
        measure("largest", "Largest", "ms", lambda row: row.largest_ms),
        Column("app", "Application", value=lambda row: row.row.app, groups=True),
        Column("node", "Node", groups=True, shown=False),
    ),
)


def brokers(console: Console) -> list[BrokerRow]:
    """The brokers of the cluster; none if it does not tell them."""
    try:
        return console.cluster.brokers()
    except ClientError:
        return []


def all_nodes(console: Console) -> list[NodeRow]:
    """All brokers."""
    return list(node_rows(console.view.sufferers(), brokers(console)))


def node(request: Request) -> Response:
    """One broker with its clients, the slowest one first.

    Raises:
        HTTPException: 404, neither the cluster nor a client tells of it.
    """
    name, console = request.path_params["node"], console_of(request)
    row = next((each for each in all_nodes(console) if each.node == name), None)
    if row is None:
        raise HTTPException(404, f"Neither the cluster nor a client tells of a node {name}.")
    found = [each for each in console.view.sufferers() if each.node == name]
    table = picture(SUFFERERS, found, SUFFERERS.state(request.query_params.multi_items()))
    query = table["state"].query(filters=(*table["state"].filters, ("node", name)))
    downloads = {"csv": f"/sufferers.csv{query}", "json": f"/api/v1/sufferers{query}"}
    return page(request, "node.html", row=row, table=table | downloads)


routes = [
    Route("/nodes/{node}", node, name="a node"),
    *table_page("/nodes", "nodes.html", NODES, all_nodes),
    *table_routes(SUFFERERS, lambda console: console.view.sufferers()),
]
