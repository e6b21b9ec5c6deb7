"""Watching a client from its page: a subscription for it alone, which ends by itself."""

from __future__ import annotations

import time
from typing import Final
from urllib.parse import quote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from odradek.client.admin import AdminClient
from odradek.client.subscriptions import delete_subscription
from odradek.plugin.lease import lease_end_s
from odradek_console.reading.leases import clear, exactly, grant, new_name
from odradek_console.rows import ClientRow
from odradek_console.web.console import Console, console_of
from odradek_console.web.guard import Form
from odradek_console.web.pages.subscriptions import administered
from odradek_console.web.table import BadQuery

METRICS: Final = "org.apache.kafka."
SECONDS: Final = ("5", "1", "15", "60")
"""Push intervals that can be chosen, the default first."""
MINUTES: Final = ("10", "5", "30", "60")
SELECTORS: Final = ("client_instance_id", "client_id")
SHOWN_S: Final = 3.0
"""Apache Kafka lists a subscription a moment after it was set."""
PAUSE_S: Final = 0.1


def begin(request: Request) -> Response:
    """Set the subscription, and delete those of watches that have ended."""
    form: Form = request.state.form
    console = console_of(request)
    seconds, minutes = chosen(form, "seconds", SECONDS), chosen(form, "minutes", MINUTES)
    selector = chosen(form, "of", SELECTORS)
    row = client_of(console, form)
    now_s = console.now_ms() / 1000
    name = new_name(int(now_s) + 60 * int(minutes))
    with administered(request, "watch.begin", name) as admin:
        clear(admin, now_s)
        match = exactly(selector, [getattr(row, selector)])
        grant(admin, METRICS, int(seconds) * 1000, match, name)
        console.leases.add(name)
        wait_until_listed(admin, name)
    return shown(console, row)


def end(request: Request) -> Response:
    """Take the subscription of a watch back."""
    form: Form = request.state.form
    console, name = console_of(request), form.get("name", "")
    if lease_end_s(name) is None:
        raise BadQuery(f"{name!r} is no subscription of a watch")
    row = client_of(console, form)
    with administered(request, "watch.end", name) as admin:
        delete_subscription(admin, name)
    return shown(console, row)


def chosen(form: Form, field: str, choices: tuple[str, ...]) -> str:
    """A field of the form, by default the first choice.

    Raises:
        BadQuery: It is none of the choices.
    """
    found = form.get(field, choices[0])
    if found not in choices:
        raise BadQuery(f"{field} must be one of {', '.join(choices)}, not {found!r}")
    return found


def client_of(console: Console, form: Form) -> ClientRow:
    """The client that the form names.

    Raises:
        HTTPException: 404, there is none.
    """
    name = form.get("instance", "")
    detail = console.view.client(name)
    if detail is None:
        raise HTTPException(404, f"No client {name} is known.")
    return detail.row


def wait_until_listed(admin: AdminClient, name: str) -> None:
    """Wait a moment until the cluster lists the subscription."""
    end_s = time.monotonic() + SHOWN_S
    while name not in admin.list_client_metrics() and time.monotonic() < end_s:
        time.sleep(PAUSE_S)


def shown(console: Console, row: ClientRow) -> Response:
    """Show the page of the client, read again."""
    console.cluster.forget()
    console.watch.poke()
    return RedirectResponse(f"/clients/{quote(row.client_instance_id, safe='')}", status_code=303)


routes = [
    Route("/watch/begin", begin, methods=["POST"]),
    Route("/watch/end", end, methods=["POST"]),
]
