"""``/events``: server-sent events that tell a page that its data have changed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from odradek_console.web.console import Console, console_of

HEARTBEAT_S: Final = 15.0
"""A comment is sent after this time without an event, so that a lost peer is noticed."""
RETRY_MS: Final = 3_000


async def events(request: Request) -> Response:
    """A stream of events ``changed``, whose data is the revision of the view."""
    console = console_of(request)
    if console.streams >= console.most_streams:
        text = f"{console.streams} pages are live already; reload this page to refresh it\n"
        return PlainTextResponse(text, status_code=503, headers={"Retry-After": "30"})
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(changes(console, request), media_type="text/event-stream", headers=headers)


async def changes(console: Console, request: Request) -> AsyncIterator[str]:
    """The events, until the peer or the server ends the stream, or the login ends."""
    console.streams += 1
    try:
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
    finally:
        console.streams -= 1


routes = [Route("/events", events)]
