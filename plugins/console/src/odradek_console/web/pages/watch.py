"""Watching a client from its page: a subscription for it alone, which ends by itself."""

from __future__ import annotations

import time
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.client.lease import lease_end_s
from odradek.client.subscriptions import delete_subscription
from odradek.findings.client_metrics import PREFIX
from odradek.findings.presets import prefixes_of
from odradek_console.links import client_link
from odradek_console.reading.leases import clear, exactly, grant, new_name
from odradek_console.rows import ClientRow
from odradek_console.web.console import Console, console_of
from odradek_console.web.guard import Form
from odradek_console.web.pages.client import described, found_client
from odradek_console.web.pages.subscriptions import administered
from odradek_console.web.table import BadQuery

LONGEST_METRICS: Final = 1_000
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
    row = found_client(request, console_of(request).now_ms()).row
    try:
        set_subscription(request, form, row)
    except BadQuery as error:
        return described(request, 400, str(error), form)
    except ClientError as error:
        return described(request, 502, f"The cluster refuses, or does not answer: {error}", form)
    return shown(console_of(request), row)


def set_subscription(request: Request, form: Form, row: ClientRow) -> None:
    """Set the subscription that a form describes.

    Raises:
        BadQuery: A field is wrong.
        ClientError: The cluster refuses it.
    """
    console = console_of(request)
    metrics, selector = metrics_of(form), chosen(form, "of", SELECTORS)
    seconds, minutes = chosen(form, "seconds", SECONDS), chosen(form, "minutes", MINUTES)
    now_s = console.now_ms() / 1000
    name = new_name(int(now_s) + 60 * int(minutes))
    with administered(request, "watch.begin", name) as admin:
        clear(admin, now_s)
        match = exactly(selector, [getattr(row, selector)])
        grant(admin, metrics, int(seconds) * 1000, match, name)
        console.leases.add(name)
        wait_until_listed(admin, name)


def end(request: Request) -> Response:
    """Take the subscription of a watch back."""
    console, name = console_of(request), request.state.form.get("name", "")
    if lease_end_s(name) is None:
        raise BadQuery(f"{name!r} is no subscription of a watch")
    row = found_client(request, console.now_ms()).row
    with administered(request, "watch.end", name) as admin:
        delete_subscription(admin, name)
    return shown(console, row)


def back(request: Request) -> Response:
    """The page of the client, for links of a form that was refused."""
    query = request.url.query
    path = client_link(request.path_params["instance"])
    return RedirectResponse(f"{path}{'?' if query else ''}{query}", status_code=303)


def metrics_of(form: Form) -> str:
    """The prefixes of metric names, with commas: also those of a preset.

    Raises:
        BadQuery: There is no prefix, or no metric's name can begin with it.
    """
    text = form.get("metrics", PREFIX)
    found = prefixes_of(text)
    if not found:
        raise BadQuery("Metrics needs at least one prefix of their names, or * for all metrics.")
    if len(text) > LONGEST_METRICS:
        raise BadQuery(f"Metrics has {len(text)} characters; at most {LONGEST_METRICS} are allowed.")
    for each in found:
        if not each.isprintable() or " " in each:
            raise BadQuery(f"Metrics: {each!r} is no prefix of a metric's name.")
    return ",".join(found)


def chosen(form: Form, field: str, choices: tuple[str, ...]) -> str:
    """A field of the form, by default the first choice.

    Raises:
        BadQuery: It is none of the choices.
    """
    found = form.get(field, choices[0])
    if found not in choices:
        raise BadQuery(f"{field} must be one of {', '.join(choices)}, not {found!r}")
    return found


def wait_until_listed(admin: AdminClient, name: str) -> None:
    """Wait a moment until the cluster lists the subscription."""
    end_s = time.monotonic() + SHOWN_S
    while name not in admin.list_client_metrics() and time.monotonic() < end_s:
        time.sleep(PAUSE_S)


def shown(console: Console, row: ClientRow) -> Response:
    """Show the page of the client, read again."""
    console.cluster.forget()
    console.watch.poke()
    return RedirectResponse(client_link(row.client_instance_id), status_code=303)


routes = [
    Route("/clients/{instance:path}/watch/end", end, methods=["POST"]),
    Route("/clients/{instance:path}/watch", begin, methods=["POST"]),
    Route("/clients/{instance:path}/watch", back, methods=["GET"]),
]
