"""Costly requests of one user leave room for those of others."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx2 as httpx
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message

from odradek_console.web.turns import PIECE_BYTES, in_pieces
from support.console_site import OPERATOR, VIEWER, Site, site


class Costly:
    """A page whose answers wait until the test lets them go."""

    def __init__(self, place: Site) -> None:
        self.place = place
        self.app = place.new_browser().app
        self.app.router.routes.append(Route("/costly", self.page))
        self.running = 0
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()

    async def page(self, request: Request) -> Response:
        self.running += 1
        self.begun.set()
        await self.may_end.wait()
        self.running -= 1
        return PlainTextResponse("done")

    async def ask(self, token: str, path: str = "/costly") -> httpx.Response:
        transport = httpx.ASGITransport(self.app, client=("127.0.0.1", 40_000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:9642") as client:
            return await client.get(path, headers={"Authorization": f"Bearer {token}"})


def run(tokens: Path, scenario: Callable[[Costly], Awaitable[None]]) -> Site:
    place = site(tokens=tokens, max_requests_per_user=3)

    async def live() -> None:
        async with asyncio.timeout(30):
            await scenario(Costly(place))

    asyncio.run(live())
    return place


def test_a_user_has_a_bounded_number_of_requests_at_once(tokens: Path) -> None:
    async def scenario(page: Costly) -> None:
        asked = [asyncio.create_task(page.ask(VIEWER)) for _ in range(20)]
        await page.begun.wait()
        other = await page.ask(OPERATOR, "/who")

        assert page.running <= 3
        assert other.status_code == 200
        page.may_end.set()
        assert {each.status_code for each in await asyncio.gather(*asked)} == {200}
        assert page.running == 0

    place = run(tokens, scenario)

    assert place.access.turns.lines == {}


def test_a_request_that_waits_too_long_for_earlier_ones_is_refused(tokens: Path) -> None:
    async def scenario(page: Costly) -> None:
        page.place.access.turns.wait_s = 0
        asked = [asyncio.create_task(page.ask(VIEWER)) for _ in range(3)]
        await page.begun.wait()
        refused = await page.ask(VIEWER, "/who")

        assert refused.status_code == 429
        assert refused.text == "3 requests of ann are being answered already: wait for them\n"
        assert refused.headers["retry-after"] == "1"
        page.may_end.set()
        await asyncio.gather(*asked)
        assert (await page.ask(VIEWER, "/who")).status_code == 200

    place = run(tokens, scenario)

    assert place.access.figures()["crowded_requests"] == 1


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES, PIECE_BYTES + 1, 5 * PIECE_BYTES])
def test_a_large_answer_is_sent_in_pieces(size: int) -> None:
    sent: list[Message] = []
    body = bytes(range(256)) * (size // 256) + bytes(size % 256)

    async def send(message: Message) -> None:
        sent.append(message)

    async def answered() -> None:
        await in_pieces(send)({"type": "http.response.body", "body": body, "more_body": False})

    asyncio.run(answered())

    assert b"".join(each["body"] for each in sent) == body
    assert max(len(each["body"]) for each in sent) <= PIECE_BYTES
    assert [each["more_body"] for each in sent] == [True] * (len(sent) - 1) + [False]


def test_who_does_not_read_an_answer_keeps_the_turn(tokens: Path) -> None:
    async def scenario(page: Costly) -> None:
        page.place.access.turns.wait_s = 0
        page.app.router.routes.append(Route("/large", lambda request: Response(bytes(9 * PIECE_BYTES))))
        reads, sent = asyncio.Event(), 0

        async def receive() -> Message:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Message) -> None:
            nonlocal sent
            if message["type"] == "http.response.body":
                sent += len(message["body"])
                await reads.wait()

        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {VIEWER}".encode())]
        scope = {"type": "http", "method": "GET", "scheme": "http", "path": "/large", "query_string": b""}
        scope |= {"client": ("127.0.0.1", 40_000), "headers": headers}
        tasks = [asyncio.create_task(page.app(dict(scope), receive, send)) for _ in range(3)]
        while sent < 3 * PIECE_BYTES:
            await asyncio.sleep(0)

        assert (await page.ask(VIEWER, "/who")).status_code == 429
        assert (await page.ask(OPERATOR, "/who")).status_code == 200
        assert sent == 3 * PIECE_BYTES
        reads.set()
        await asyncio.gather(*tasks)
        assert (await page.ask(VIEWER, "/who")).status_code == 200

    run(tokens, scenario)
