"""The page of delivery: forwarders with their lag, dead letters, and delivering again."""

from __future__ import annotations

from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from odradek_console.cluster_rows import DeadLetterRow, DeliveryRow
from odradek_console.reading.replay import deliver_from, deliver_since
from odradek_console.web.console import console_of
from odradek_console.web.guard import Form
from odradek_console.web.pages.programs import destinations_of
from odradek_console.web.render import page, picture, table_routes, utc
from odradek_console.web.table import BadQuery, Column, State, Table
from odradek_console.web.users import user_of

LONGEST_MINUTES: Final = 10 * 366 * 24 * 60
DELIVERY: Final[Table[DeliveryRow]] = Table(
    name="delivery",
    sort="name",
    row=DeliveryRow,
    columns=(
        Column("name", "Destination"),
        Column("group_id", "Group"),
        Column("partitions", "Partitions", number=True),
        Column("lag_records", "Waiting pushes", number=True),
    ),
)
DEAD_LETTERS: Final[Table[DeadLetterRow]] = Table(
    name="dead-letters",
    sort="-time",
    row=DeadLetterRow,
    columns=(
        Column(
            "time", "Given up", value=lambda row: row.time_ms, text=lambda row: utc(row.time_ms), number=True
        ),
        Column("forwarder", "Destination", groups=True),
        Column("reason", "Reason", groups=True),
        Column(
            "client_id",
            "Client",
            text=lambda row: row.client_id or row.client_instance_id,
            link=lambda row: f"/clients/{row.client_instance_id}",
            groups=True,
        ),
        Column("payload_bytes", "Bytes", number=True),
        Column("origin_partition", "Partition", number=True),
        Column("origin_offset", "Offset", number=True),
    ),
)


def delivery(request: Request) -> Response:
    """The forwarders, and the latest dead letters; the query is that of the dead letters."""
    console = console_of(request)
    cluster = console.cluster
    state = DEAD_LETTERS.state(request.query_params.multi_items())
    forwarders = cluster.delivery()
    return page(
        request,
        "delivery.html",
        forwarders=picture(DELIVERY, forwarders, State(sort="name")),
        groups=forwarders,
        destinations=destinations_of(console),
        letters=picture(DEAD_LETTERS, cluster.dead_letters(), state),
    )


def again(request: Request) -> Response:
    """Deliver the pushes of the last minutes again, or those of a partition from an offset on.

    Raises:
        BadQuery: The forwarder or a number is wrong.
        ClientError: The cluster refuses.
    """
    console = console_of(request)
    form: Form = request.state.form
    known = {each.group_id for each in console.cluster.delivery()}
    group = form.get("group", "")
    if group not in known:
        raise BadQuery(f"no forwarder has the group {group!r}")
    with console.audit.act(user_of(request), "delivery.again", group), console.connect() as admin:
        if form.get("offset"):
            partition = console.cluster.topic, whole(form, "partition", 2**31 - 1)
            deliver_from(admin, group, partition, whole(form, "offset", 2**63 - 1))
        else:
            minutes = whole(form, "minutes", LONGEST_MINUTES)
            deliver_since(admin, group, console.now_ms() - minutes * 60_000)
    console.cluster.forget()
    return RedirectResponse("/delivery", status_code=303)


def whole(form: Form, name: str, most: int) -> int:
    """A whole number of a form.

    Raises:
        BadQuery: It is not one from 0 to ``most``.
    """
    text = form.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most):
        raise BadQuery(f"{name} must be a whole number from 0 to {most}, not {text!r}")
    return int(text)


routes = [
    Route("/delivery", delivery),
    Route("/delivery/again", again, methods=["POST"]),
    *table_routes(DELIVERY, lambda console: console.cluster.delivery()),
    *table_routes(DEAD_LETTERS, lambda console: console.cluster.dead_letters()),
]
