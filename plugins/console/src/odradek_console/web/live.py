"""``/events``: server-sent events that tell a page that its data have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from odradek_console.web.console import Console, console_of
from odradek_console.web.users import user_of

HEARTBEAT_S: Final = 15.0
"""A comment is sent after this time without an event, so that a lost peer is noticed."""
RETRY_MS: Final = 3_000


class EventStream(StreamingResponse):
    """A stream that counts as one of its user until it ends.

    Args:
        console: The console, where it is open already.
        request: The request.
    """

    def __init__(self, console: Console, request: Request) -> None:
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        super().__init__(changes(console, request), media_type="text/event-stream", headers=headers)
        self.streams = console.access.streams
        self.user = user_of(request).name

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self.streams.close(self.user)


async def events(request: Request) -> Response:
    """A stream of events ``changed``, whose data is the revision of the view."""
    console = console_of(request)
    problem = console.access.streams.open(user_of(request).name)
    if problem is not None:
        return PlainTextResponse(f"{problem}\n", status_code=503, headers={"Retry-After": "30"})
    return EventStream(console, request)


async def changes(console: Console, request: Request) -> AsyncIterator[str]:
    """The events, until the peer or the server ends the stream, or the login ends."""
    yield f"retry: {RETRY_MS}\n\n"
    sent, quiet_s = console.view.revision, 0.0
    while not console.stopping.is_set() and console.access.is_logged_in(request):
        await asyncio.sleep(console.stream_interval_s)
        quiet_s += console.stream_interval_s
        revision = console.view.revision
        if revision != sent:
            sent, quiet_s = revision, 0.0
            yield f"event: changed\ndata: {revision}\n\n"
        elif quiet_s >= HEARTBEAT_S:
            quiet_s = 0.0
            yield ": no change\n\n"


routes = [Route("/events", events)]
