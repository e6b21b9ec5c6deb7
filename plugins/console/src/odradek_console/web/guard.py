"""The gate in front of all pages: no request reaches one unless it may."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Final
from urllib.parse import parse_qsl, quote

from markupsafe import Markup
from starlette.datastructures import ImmutableMultiDict
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from odradek.endpoints import holder_of
from odradek_console.web.access import EVENTS, Access, Caller
from odradek_console.web.refusals import Refused
from odradek_console.web.turns import in_pieces
from odradek_console.web.users import Role

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
LOGIN: Final = "/login"
LOGOUT: Final = "/logout"
PROVIDER: Final = "/login/provider"
"""Leads a browser to the OpenID provider."""
BACK: Final = "/login/provider/back"
"""The redirect URI: the provider leads the browser back here."""
HEALTH: Final = "/healthz"
STATIC: Final = "/static/"
API: Final = "/api/"
FORM_TYPE: Final = "application/x-www-form-urlencoded"
MOST_FIELDS: Final = 1_000
LOGIN_BYTES: Final = 8 << 10
"""Size of a request of nobody: a token and the page that was wanted."""
AGAIN: Final = Markup('<!doctype html><title>Odradek</title><meta http-equiv="refresh" content="0;url={}">')
Form = ImmutableMultiDict[str, str]
"""The fields of a form."""


class Guard:
    """Lets requests through: by host, user, role, rate, origin, form and size.

    A page finds the user in ``request.state.user``, and a form in ``request.state.form``. A request
    that may change something needs the role operator, whatever the page does.

    Args:
        app: The pages.
        access: Who may look and act.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self.app = app
        self.access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        try:
            await self.admit(request)
            async with self.turn(request):
                await self.app(scope, receive, in_pieces(send))
        except Refused as refused:
            await answer(request, refused)(scope, receive, send)

    def turn(self, request: Request) -> AbstractAsyncContextManager[None]:
        """The turn of a request of a user. A stream waits for nothing, and ends late."""
        caller: Caller | None = getattr(request.state, "caller", None)
        if caller is None or request.scope["path"] == EVENTS:
            return nullcontext()
        return self.access.turn(caller.user)

    async def admit(self, request: Request) -> None:
        """Let a request in.

        Raises:
            Refused: The request is refused.
        """
        access, path = self.access, request.scope["path"]
        if path == HEALTH:
            return
        access.check_host(request)
        caller = access.caller(request)
        self.check_rate(request, caller)
        request.state.caller = caller
        is_public = path in (LOGIN, PROVIDER, BACK) or path.startswith(STATIC)
        if caller is None and not is_public:
            raise self.not_logged_in(request)
        if caller is not None:
            request.state.user = caller.user
        if request.method in SAFE_METHODS:
            return
        if caller is None or caller.form_key is not None:
            access.check_origin(request)
        if caller is not None:
            self.check_role(request, caller)
        most = access.settings.max_body_bytes
        body = await self.body(request, most if caller is not None else min(most, LOGIN_BYTES))
        request.state.form = form = read_form(request, body)
        if caller is not None and path != LOGIN:
            access.check_form(caller, request.headers, form)

    def check_rate(self, request: Request, caller: Caller | None) -> None:
        """Count a request of a user, or of an address without one. A login counts when its user is known.

        Raises:
            Refused: 429.
        """
        if caller is not None or (request.method, request.scope["path"]) != ("POST", LOGIN):
            address = holder_of(self.access.address(request))
            self.access.limit(f"user:{caller.user.name}" if caller is not None else address)

    def not_logged_in(self, request: Request) -> Refused:
        """The answer to a request without a login: the login page for a person, a status for a program."""
        if not self.access.settings.has_page:
            return Refused(401, "this console is reached through its proxy, which logs users in")
        if request.method in SAFE_METHODS and "text/html" in request.headers.get("accept", ""):
            query = request.scope["query_string"].decode("latin-1")
            path = request.scope["raw_path"].decode("latin-1") + (f"?{query}" if query else "")
            return Refused(303, "log in", wanted=own_path(path))
        if self.access.tokens is None:
            return Refused(401, "log in with a browser: this console has no tokens for programs")
        return Refused(401, "log in: send Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})

    def check_role(self, request: Request, caller: Caller) -> None:
        """Refuse acts of viewers.

        Raises:
            Refused: 403.
        """
        if caller.user.role is Role.OPERATOR or request.scope["path"] in (LOGIN, LOGOUT):
            return
        self.access.counts.refused_roles += 1
        reason = f"{caller.user.name} may look, but only an operator may do this"
        self.access.audit.refused(caller.user, request.method, request.scope["path"], reason)
        raise Refused(403, reason)

    async def body(self, request: Request, most: int) -> bytes:
        """Read a body within its bounds.

        Args:
            request: The request.
            most: The bytes that it may have.

        Raises:
            Refused: 413, it is too large; 408, it takes too long; 400, it is cut off.
        """
        found = bytearray()
        length = request.headers.get("content-length", "0")
        try:
            if not length.isdecimal() or int(length) > most:
                raise too_large(most)
            async with asyncio.timeout(self.access.settings.body_timeout_s):
                async for piece in request.stream():
                    found += piece
                    if len(found) > most:
                        raise too_large(most)
            return bytes(found)
        except TimeoutError:
            problem = Refused(408, "the request took too long", {"Connection": "close"})
        except ClientDisconnect:
            problem = Refused(400, "the request was cut off")
        except Refused as refused:
            problem = refused
        self.access.counts.refused_bodies += 1
        raise problem


def own_path(text: str) -> str:
    """A path of this console, to go to after a login; the first page for any other text.

    A browser takes ``//`` and ``/\\`` for the beginning of another site's address, and leaves control
    characters out before it looks.
    """
    is_own = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if is_own else "/"


def too_large(most: int) -> Refused:
    """The refusal of a body that is too large, of which the rest is not read."""
    return Refused(413, f"a request may have {most} bytes", {"Connection": "close"})


def read_form(request: Request, body: bytes) -> Form:
    """The fields of a form; empty for anything else.

    Raises:
        Refused: 400, it is malformed.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
        return Form()
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        raise Refused(400, f"expected a form of at most {MOST_FIELDS} fields in UTF-8") from None
    return Form(pairs)


def again(path: str) -> Response:
    """A page that leads to a path of the console. The browser sends strict cookies with that request: it
    comes from the console, whoever has led the browser here.
    """
    return HTMLResponse(AGAIN.format(path), headers={"Vary": "Sec-Fetch-Site"})


def answer(request: Request, refused: Refused) -> Response:
    """The answer to a request that is refused. It shows nothing of the console."""
    if refused.status == 303 and request.headers.get("sec-fetch-site") == "cross-site":
        # The browser keeps a strict cookie back when another site links here: our own page asks again.
        return again(refused.wanted)
    if refused.status == 303:
        return RedirectResponse(f"{LOGIN}?next={quote(refused.wanted, safe='')}", status_code=303)
    if request.scope["path"].startswith(API):
        return JSONResponse({"error": refused.reason}, status_code=refused.status, headers=refused.headers)
    return PlainTextResponse(f"{refused.reason}\n", status_code=refused.status, headers=refused.headers)
