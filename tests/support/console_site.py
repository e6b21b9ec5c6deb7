"""A console with pages of its own, for tests of its logins, roles, forms and bounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from odradek.endpoints import Address
from odradek_console.web.access import Access, csrf_token
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.app import make_app
from odradek_console.web.users import user_of
from support.console_client import Browser, console_without_cluster

LOOPBACK = Address("127.0.0.1", 9642)
ANYWHERE = Address("0.0.0.0", 9642)
VIEWER = "a-token-for-looking-1"
OPERATOR = "a-token-for-acting-22"


@dataclass
class Clock:
    now_s: float = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Site:
    """A console with three pages of its own: who asks, a form token, and an act."""

    access: Access
    clock: Clock
    acts: list[dict[str, str]]
    new_browser: Callable[..., Browser]


async def who(request: Request) -> Response:
    user = user_of(request)
    return JSONResponse([user.name, str(user.role), user.address])


async def a_form(request: Request) -> Response:
    return PlainTextResponse(csrf_token(request))


def site(address: Address = LOOPBACK, **settings: Any) -> Site:
    clock, acts = Clock(), list[dict[str, str]]()
    access = Access(AccessSettings(**settings), address, clock)
    app = make_app(console_without_cluster(access))

    async def act(request: Request) -> Response:
        with access.audit.act(user_of(request), "thing.alter", request.state.form["thing"]):
            acts.append(dict(request.state.form))
        return PlainTextResponse("done")

    app.router.routes += [Route("/who", who), Route("/form", a_form), Route("/act", act, methods=["POST"])]
    return Site(access, clock, acts, lambda **more: Browser(app=app, **more))


def logged_in(place: Site, token: str, **more: Any) -> Browser:
    browser = place.new_browser(**more)
    answer = browser.post("/login", {"token": token})
    assert answer.status_code == 303, answer.text
    return browser


def acted(browser: Browser, csrf: str | None = None, **headers: str) -> httpx.Response:
    """Send the form of the act, with the token that its page has."""
    token = browser.get("/form").text if csrf is None else csrf
    return browser.post("/act", {"thing": "x", "csrf": token}, headers)
