"""Logging in and out."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from odradek_console.web.access import Access, Caller, Refused
from odradek_console.web.console import console_of
from odradek_console.web.guard import HEALTH, LOGIN, LOGOUT, own_path
from odradek_console.web.render import page
from odradek_console.web.users import User, user_of


def access_of(request: Request) -> Access:
    """The users and their roles."""
    return console_of(request).access


async def show(request: Request) -> Response:
    """The form."""
    if access_of(request).tokens is None:
        return RedirectResponse("/", status_code=303)
    return form(request, own_path(request.query_params.get("next", "/")))


def form(request: Request, after: str, problem: str = "", status: int = 200) -> Response:
    """The form, with what was wrong."""
    return page(request, "login.html", status=status, after=after, problem=problem)


async def log_in(request: Request) -> Response:
    """Begin a session, always a new one."""
    access = access_of(request)
    after = own_path(str(request.state.form.get("next", "/")))
    address = access.address(request)
    try:
        token = access.login(str(request.state.form.get("token", "")).strip(), address, "login")
        user = User(token.name, token.role, address)
        access.check_rate(request, Caller(user=user, form_key=None))
    except Refused as refused:
        answer = form(request, after, refused.reason, refused.status)
        answer.headers.update(refused.headers)
        return answer
    before = access.session(request)
    if before is not None:
        access.sessions.close(before.id)
    session = access.sessions.open(token)
    access.counts.logins += 1
    access.audit.write(user, "login", "console", "allowed")
    response = RedirectResponse(after, status_code=303)
    response.set_cookie(
        access.cookie(request),
        session.id,
        path="/",
        httponly=True,
        samesite="strict",
        secure=access.is_secure(request),
    )
    return response


async def log_out(request: Request) -> Response:
    """End the session."""
    access = access_of(request)
    session = access.session(request)
    if session is not None:
        access.sessions.close(session.id)
        access.audit.write(user_of(request), "logout", "console", "allowed")
    response = RedirectResponse(LOGIN, status_code=303)
    response.delete_cookie(
        access.cookie(request), path="/", httponly=True, samesite="strict", secure=access.is_secure(request)
    )
    return response


async def health(request: Request) -> Response:
    """Whether the server answers. It needs no login and tells nothing else."""
    return PlainTextResponse("ok\n")


routes = [
    Route(LOGIN, show, methods=["GET"]),
    Route(LOGIN, log_in, methods=["POST"]),
    Route(LOGOUT, log_out, methods=["POST"]),
    Route(HEALTH, health),
]
