"""A browser for the pages of the console, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import httpx2 as httpx
from starlette.applications import Starlette
from starlette.testclient import TestClient

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError
from odradek.endpoints import Address
from odradek_console.view import View
from odradek_console.web.access import CSRF_HEADER, Access
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.console import Console, make_console
from odradek_console.web.users import LOCAL, Role

LOOPBACK = "http://127.0.0.1"


def no_cluster() -> NoReturn:
    """Make a client where there is no cluster.

    Raises:
        ClientError: Always.
    """
    raise ClientError("no cluster")


def console_without_cluster(access: Access, connect: Callable[[], AdminClient] = no_cluster) -> Console:
    """A console that reads nothing."""
    return make_console(View(connect), connect, "nowhere", access)


def operator_access(**settings: Any) -> Access:
    """Everybody on this machine may act."""
    return Access(AccessSettings(local_role=Role.OPERATOR, **settings), Address("127.0.0.1", 0))


def page_client(app: Starlette) -> TestClient:
    """A browser on this machine, without a login. Its forms are those of a page; whether it may act is up to
    the application's ``Console.access``.
    """
    access: Access = app.state.console.access
    headers = {CSRF_HEADER: access.forms.make(LOCAL)}
    return TestClient(app, base_url=LOOPBACK, client=("127.0.0.1", 40_000), headers=headers)


@dataclass(slots=True, kw_only=True)
class Browser:
    """Sends requests to coroutines of an application, without a thread. It keeps cookies."""

    app: Starlette
    address: str = "127.0.0.1"
    """The address that its requests come from."""
    url: str = "http://127.0.0.1:9642"
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Ask for a page, as a person does."""
        return self.send("GET", path, headers={"Accept": "text/html"} | dict(headers or {}))

    def post(
        self, path: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a form."""
        return self.send("POST", path, headers=headers, form=form or {})

    def send(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        form: Mapping[str, str] | None = None,
        content: bytes | None = None,
    ) -> httpx.Response:
        """Send a request; redirects are not followed."""

        async def sent() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(self.address, 40_000))
            async with httpx.AsyncClient(
                transport=transport, base_url=self.url, cookies=self.cookies
            ) as client:
                answer = await client.request(method, path, headers=headers, data=form, content=content)
                self.cookies = client.cookies
                return answer

        return asyncio.run(sent())
