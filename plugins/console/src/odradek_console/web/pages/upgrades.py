"""The page of the next upgrade: which clients a version of Kafka no longer serves."""

from __future__ import annotations

from collections import Counter
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek_console.links import client_link
from odradek_console.upgrades import UpgradeRow, Verdict, kafka_versions
from odradek_console.web.console import console_of
from odradek_console.web.render import page, picture, table_routes
from odradek_console.web.table import Column, Table

RANKS: Final = {each: rank for rank, each in enumerate(Verdict)}
FIRST: Final = kafka_versions()[0]["version"]
UPGRADES: Final[Table[UpgradeRow]] = Table(
    name="upgrades",
    sort="verdict",
    row=UpgradeRow,
    usual=(("kafka", FIRST),),
    columns=(
        Column(
            "client_id",
            "Client",
            value=lambda each: each.row.client_id,
            text=lambda each: each.row.client_id or each.row.client_instance_id,
            link=lambda each: client_link(each.row.client_instance_id),
        ),
        Column(
            "verdict",
            "Verdict",
            value=lambda each: str(each.verdict),
            by=lambda each: RANKS[each.verdict],
            groups=True,
        ),
        Column("reasons", "Why", groups=True),
        Column(
            "software",
            "Library",
            value=lambda each: f"{each.row.software} {each.row.version}".strip(),
            groups=True,
        ),
        Column("app", "Application", value=lambda each: each.row.app, groups=True),
        Column("owner", "Team", value=lambda each: each.row.owner, groups=True),
        Column("state", "State", value=lambda each: str(each.row.state), groups=True),
        Column("apis", "APIs seen", number=True),
        Column("kafka", "Kafka", shown=False),
    ),
)


def upgrades(request: Request) -> Response:
    """The clients, those that break first."""
    state = UPGRADES.state(request.query_params.multi_items())
    rows = console_of(request).view.upgrades()
    chosen = dict(UPGRADES.as_usual(state).filters).get("kafka", FIRST)
    return page(
        request,
        "upgrades.html",
        table=picture(UPGRADES, rows, state),
        versions=kafka_versions(),
        chosen=chosen,
        counts=Counter(str(each.verdict) for each in rows if each.kafka == chosen),
        verdicts=[str(each) for each in Verdict],
    )


routes = [Route("/upgrades", upgrades), *table_routes(UPGRADES, lambda console: console.view.upgrades())]
