"""The stream that tells a page that its data have changed."""

from __future__ import annotations

import asyncio
from pathlib import Path

from starlette.requests import Request

from odradek_console.web.live import changes
from support.console_site import VIEWER, logged_in, site


def test_a_stream_ends_with_its_login(tokens: Path) -> None:
    place = site(tokens=tokens)
    browser = logged_in(place, VIEWER)
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    headers = {"host": "127.0.0.1:9642", "cookie": cookies}
    request = Request(
        {
            "type": "http",
            "path": "/events",
            "scheme": "http",
            "client": ("127.0.0.1", 40_000),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
    )
    console = browser.app.state.console
    console.stream_interval_s = 0.0

    async def change() -> None:
        while True:
            console.view.reader.progress.revision += 1
            await asyncio.sleep(0)

    async def read() -> list[str]:
        changing, found = asyncio.create_task(change()), list[str]()
        async for event in changes(console, request):
            found.append(event)
            if len(found) == 3:
                place.access.sessions.sessions.clear()
        changing.cancel()
        return found

    assert len(asyncio.run(read())) == 3
