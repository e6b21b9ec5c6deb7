"""The application: its routes, what it answers to errors, and the headers of every answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import odradek
from odradek.client.errors import ClientError
from odradek_console.group_pictures import GroupDetail
from odradek_console.json_form import JsonRow
from odradek_console.reading.pushes import Pushes
from odradek_console.rows import Reading
from odradek_console.topic_pictures import TopicDetail
from odradek_console.waterfall import Waterfall
from odradek_console.web import live, openapi
from odradek_console.web.console import Console
from odradek_console.web.guard import Guard
from odradek_console.web.pages import (
    client,
    delivery,
    events,
    fleet,
    groups,
    host,
    login,
    metrics,
    nodes,
    programs,
    pushes,
    quotas,
    runbook,
    subscriptions,
    topics,
    upgrades,
    watch,
    why,
)
from odradek_console.web.render import TEMPLATES, page
from odradek_console.web.table import BadQuery, Table

STATIC: Final = Path(__file__).parent / "static"
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
COMPRESSION: Final = 6
"""Of gzip: 9 takes four times as long for a table of 5000 rows, and saves 6 %."""
PAGES: Final = (
    fleet,
    events,
    pushes,
    watch,
    why,
    client,
    groups,
    nodes,
    programs,
    runbook,
    subscriptions,
    topics,
    upgrades,
    quotas,
    delivery,
    host,
    metrics,
    live,
    login,
)
"""Modules with ``routes``."""
CLIENT: Final = "/api/v1/clients/{instance}"
TABLES: Final[dict[str, Table[Any]]] = {
    f"/api/v1/{each.name}": each
    for each in (
        fleet.CLIENTS,
        fleet.CAUSES,
        groups.GROUPS,
        nodes.NODES,
        nodes.SUFFERERS,
        events.EVENTS,
        topics.TOPICS,
        upgrades.UPGRADES,
        subscriptions.SUBSCRIPTIONS,
        subscriptions.CHANGES,
        quotas.QUOTAS,
        delivery.DELIVERY,
        delivery.DEAD_LETTERS,
        programs.PROGRAMS,
        programs.DESTINATIONS,
        host.BROKERS,
        host.CONFIGS,
    )
} | {f"{CLIENT}/series": client.SERIES}
"""Tables of the API, by path."""
OBJECTS: Final[dict[str, tuple[str, type[JsonRow]]]] = {
    CLIENT: ("A client by its instance id or client id", client.DescribedClient),
    f"{CLIENT}/why": ("Where the time of a client's requests goes, beside its peers and its past", Waterfall),
    f"{CLIENT}/pushes": ("The latest pushes of a client, decoded", Pushes),
    "/api/v1/groups/{group}": ("A consumer group with its members and partitions", GroupDetail),
    "/api/v1/topics/{topic}": ("A topic with the clients that write and read it", TopicDetail),
    "/api/v1/reading": ("How far the topic has been read", Reading),
}
"""Paths of the API that are no tables."""
WINDOW: Final = openapi.query(
    client.WINDOW, "The time whose points are wanted.", openapi.enum([*client.WINDOWS, *client.OLDER_WINDOWS])
)


class SecurityHeaders:
    """Adds the headers that keep other sites and other content out. Only static files may be stored."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if not scope["path"].startswith("/static/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self.app(scope, receive, send_with_headers if scope["type"] == "http" else send)


def failure(request: Request, status: int, text: str) -> Response:
    """An error as JSON below ``/api/``, otherwise as a page."""
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": text}, status_code=status)
    if getattr(request.state, "user", None) is None:  # the page has the name of the cluster
        return PlainTextResponse(f"{text}\n", status_code=status)
    return page(request, "failure.html", status=status, text=text)


def refused(request: Request, error: Exception) -> Response:
    """The answer to a query that makes no sense."""
    return failure(request, 400, str(error))


def not_served(request: Request, error: Exception) -> Response:
    """The answer to a path or method that does not exist, or is not allowed."""
    assert isinstance(error, HTTPException)
    found = failure(request, error.status_code, str(error.detail))
    found.headers.update(error.headers or {})
    return found


def unreachable(request: Request, error: Exception) -> Response:
    """The answer when the cluster refuses a request or does not answer."""
    return failure(request, 502, f"The cluster at {request.app.state.console.cluster_name}: {error}")


def described(request: Request) -> Response:
    """The document of the API."""
    further = {path: [WINDOW] for path in (CLIENT, f"{CLIENT}/series")}
    return JSONResponse(openapi.document(TABLES, OBJECTS, further, odradek.__version__))


def make_app(console: Console) -> Starlette:
    """The application of a console. It reads its templates now, so that the first page is quick."""
    for name in TEMPLATES.list_templates():
        TEMPLATES.get_template(name)
    app = Starlette(
        routes=[
            *(route for module in PAGES for route in module.routes),
            Route(openapi.PATH, described, name="the document of the API"),
            Mount("/static", StaticFiles(directory=STATIC), name="static"),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(Guard, access=console.access),
            Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=COMPRESSION),
        ],
        exception_handlers={BadQuery: refused, HTTPException: not_served, ClientError: unreachable},
    )
    app.router.redirect_slashes = False  # it would lead to whatever name the header Host has
    app.state.console = console
    return app
