"""The page of settings: brokers, settings of telemetry, and the console itself."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from odradek_console.cluster_rows import BrokerRow, ConfigRow
from odradek_console.web.console import console_of
from odradek_console.web.render import page, picture, table_routes
from odradek_console.web.table import Column, State, Table

BROKERS: Final[Table[BrokerRow]] = Table(
    name="brokers",
    sort="node_id",
    row=BrokerRow,
    columns=(
        Column("node_id", "Broker", number=True),
        Column("address", "Address", value=lambda row: f"{row.host}:{row.port}"),
        Column("controller", "Controller", value=lambda row: "yes" if row.is_controller else ""),
    ),
)
CONFIGS: Final[Table[ConfigRow]] = Table(
    name="configs",
    sort="resource",
    row=ConfigRow,
    columns=(
        Column("resource", "Resource", groups=True),
        Column("name", "Setting", groups=True),
        Column("value", "Value"),
        Column("source", "Set by", groups=True),
    ),
)


def host(request: Request) -> Response:
    """The brokers, the settings and the console; the query is that of the settings."""
    console = console_of(request)
    cluster = console.cluster
    return page(
        request,
        "host.html",
        counts=console.counts,
        brokers=picture(BROKERS, cluster.brokers(), State(sort="node_id")),
        configs=picture(CONFIGS, cluster.configs(), CONFIGS.state(request.query_params.multi_items())),
    )


def reading_json(request: Request) -> Response:
    """The progress of reading the topic, as JSON."""
    return JSONResponse(console_of(request).view.reading().to_json())


routes = [
    Route("/host", host),
    Route("/api/v1/reading", reading_json),
    *table_routes(BROKERS, lambda console: console.cluster.brokers()),
    *table_routes(CONFIGS, lambda console: console.cluster.configs()),
]
