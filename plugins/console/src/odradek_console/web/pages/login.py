"""Logging in and out, with a token or at an OpenID provider."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from odradek.endpoints import holder_of
from odradek_console.web.access import SESSION_COOKIE, Access
from odradek_console.web.audit import FAILED
from odradek_console.web.console import console_of
from odradek_console.web.guard import BACK, HEALTH, LOGIN, LOGOUT, PROVIDER, again, own_path
from odradek_console.web.oidc_settings import LONGEST
from odradek_console.web.refusals import LoginRefused, ProviderFailed, Refused
from odradek_console.web.render import page
from odradek_console.web.sessions import Begun
from odradek_console.web.users import Role, User, user_of

if TYPE_CHECKING:
    from odradek_console.web.oidc import Provider

Found = TypeVar("Found")
BEGUN_COOKIE: Final = "odradek-login"
NOT_BEGUN: Final = "this login was not begun in this browser, or too long ago: log in again"


def access_of(request: Request) -> Access:
    """The users and their roles."""
    return console_of(request).access


def provider_of(request: Request) -> Provider:
    """The OpenID provider.

    Raises:
        HTTPException: 404, there is none.
    """
    found = access_of(request).oidc
    if found is None:
        raise HTTPException(404)
    return found


def session_id_of(request: Request) -> str:
    """The id of the browser's session; empty without one."""
    session = access_of(request).session(request)
    return session.id if session is not None else ""


async def show(request: Request) -> Response:
    """The page for logging in."""
    if not access_of(request).settings.has_page:
        return RedirectResponse("/", status_code=303)
    return form(request, own_path(request.query_params.get("next", "/")))


def form(request: Request, after: str, refused: Refused | None = None) -> Response:
    """The page for logging in, with what was wrong."""
    access = access_of(request)
    found = page(
        request,
        "login.html",
        status=refused.status if refused is not None else 200,
        after=after,
        problem=refused.reason if refused is not None else "",
        has_tokens=access.tokens is not None,
        provider=access.oidc.settings.name if access.oidc is not None else "",
    )
    found.headers.update(refused.headers if refused is not None else {})
    return found


def remember(request: Request, answer: Response, value: str, what: str = SESSION_COOKIE) -> Response:
    """Let the browser remember a session, or a login that was begun; an empty id makes it forget one.

    The cookie of a begun login is lax: the browser must send it when the provider leads it back here.
    """
    access = access_of(request)
    answer.set_cookie(
        access.cookie(request, what),
        value,
        max_age=None if value else 0,
        path="/",
        httponly=True,
        samesite="strict" if what == SESSION_COOKIE else "lax",
        secure=access.is_secure(request),
    )
    return answer


async def log_in(request: Request) -> Response:
    """Begin a session of a user with a token."""
    access = access_of(request)
    after = own_path(str(request.state.form.get("next", "/")))
    address = access.address(request)
    try:
        token = access.login(str(request.state.form.get("token", "")).strip(), address, "login")
        session_id = access.begin_session(token, address, session_id_of(request))
    except Refused as refused:
        return form(request, after, refused)
    return remember(request, RedirectResponse(after, status_code=303), session_id)


async def go_to_provider(request: Request) -> Response:
    """Begin a login at the provider."""
    access, provider = access_of(request), provider_of(request)
    after = own_path(request.query_params.get("next", "/"))
    if request.headers.get("sec-fetch-site") == "cross-site":  # a person begins a login, no other site
        return form(request, after)
    begun = Begun(redirect_uri=access.origin(request) + BACK, after=after, session=session_id_of(request))
    try:
        url = await asked(request, partial(provider.begin, begun))
    except Refused as refused:
        return form(request, after, refused)
    held = provider.begun.open(holder_of(access.address(request)), begun)
    return remember(request, RedirectResponse(url, status_code=303), held.id, BEGUN_COOKIE)


async def come_back(request: Request) -> Response:
    """Begin a session of a user whom the provider has led back here."""
    access, provider, query = access_of(request), provider_of(request), request.query_params
    held = provider.begun.find(request.cookies.get(access.cookie(request, BEGUN_COOKIE), ""))
    after = held.held.after if held is not None else "/"
    address = access.address(request)
    try:
        if held is None or not hmac.compare_digest(query.get("state", "").encode(), held.held.state.encode()):
            raise access.refuse_login(NOT_BEGUN, address)
        provider.begun.close(held.id)
        if "code" not in query:
            said = f"{query.get('error', 'no code')}: {query.get('error_description', '')}"
            raise access.refuse_login(f"{provider.settings.name} lets nobody in: {said[:LONGEST]!r}", address)
        login, subject = await asked(request, partial(provider.finish, held.held, query["code"]))
        how = f"{subject[:LONGEST]!r} of {provider.settings.issuer}"
        session_id = access.begin_session(login, address, held.held.session, how)
    except Refused as refused:
        return form(request, after, refused)
    return remember(request, remember(request, again(after), session_id), "", BEGUN_COOKIE)


async def asked(request: Request, step: Callable[[float], Found]) -> Found:
    """Do a step of a login at the provider.

    Raises:
        Refused: The user is not let in, or the provider does not answer.
    """
    access, provider = access_of(request), provider_of(request)
    address = access.address(request)
    try:
        return await provider.on_thread(address, step)
    except LoginRefused as error:
        raise access.refuse_login(str(error), address, name=error.name) from None
    except ProviderFailed as error:
        access.counts.failed_logins += 1
        access.audit.refused(User("", Role.VIEWER, address), "login", "console", str(error), FAILED)
        raise Refused(502, f"{provider.settings.name} cannot log you in now: {error}") from None


async def log_out(request: Request) -> Response:
    """End the session. That of the provider goes on."""
    access = access_of(request)
    session = access.session(request)
    if session is not None:
        access.sessions.close(session.id)
        access.audit.write(user_of(request), "logout", "console", "allowed")
    return remember(request, RedirectResponse(LOGIN, status_code=303), "")


async def health(request: Request) -> Response:
    """Whether the server answers. It needs no login and tells nothing else."""
    return PlainTextResponse("ok\n")


routes = [
    Route(LOGIN, show, methods=["GET"]),
    Route(LOGIN, log_in, methods=["POST"]),
    Route(PROVIDER, go_to_provider),
    Route(BACK, come_back),
    Route(LOGOUT, log_out, methods=["POST"]),
    Route(HEALTH, health),
]
