"""The page of client quotas."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlencode

from odradek_console.cluster_rows import QuotaRow
from odradek_console.text import short
from odradek_console.web.render import table_page
from odradek_console.web.table import Column, Table

LIMITS: Final = {
    "producer_byte_rate": "Produce B/s",
    "consumer_byte_rate": "Fetch B/s",
    "request_percentage": "Request time %",
    "controller_mutation_rate": "Mutations/s",
    "connection_creation_rate": "Connections/s",
}
ABSENT: Final = ""


def part(row: QuotaRow, kind: str) -> str:
    """The name of a part of the entity; empty if it has no such part."""
    found = dict(row.entity)
    return (found[kind] or "(default)") if kind in found else ABSENT


def clients_link(row: QuotaRow) -> str:
    """The clients that the entity names; those of a default entity cannot be listed."""
    query = {"client_id": part(row, "client-id"), "principal": part(row, "user"), "address": part(row, "ip")}
    if query["principal"]:
        query["principal"] = f"User:{query['principal']}"
    named = {key: value for key, value in query.items() if value and "(default)" not in value}
    return f"/?{urlencode(named)}" if named else ""


def limit_column(key: str, heading: str) -> Column[QuotaRow]:
    return Column(
        key,
        heading,
        value=lambda row: dict(row.limits).get(key),
        text=lambda row: short(dict(row.limits)[key]) if key in dict(row.limits) else "",
        number=True,
    )


QUOTAS: Final[Table[QuotaRow]] = Table(
    name="quotas",
    sort="user",
    row=QuotaRow,
    columns=(
        Column("user", "User", value=lambda row: part(row, "user"), link=clients_link, groups=True),
        Column("client_id", "Client id", value=lambda row: part(row, "client-id"), link=clients_link),
        Column("ip", "IP", value=lambda row: part(row, "ip"), link=clients_link),
        *(limit_column(key, heading) for key, heading in LIMITS.items()),
    ),
)


routes = table_page("/quotas", "quotas.html", QUOTAS, lambda console: console.cluster.quotas())
