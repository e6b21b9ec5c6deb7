"""A client of the console's pages without a socket."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.testclient import TestClient

from odradek.endpoints import Address
from odradek_console.web.access import CSRF_HEADER, Access, AccessSettings
from odradek_console.web.users import LOCAL, Role

LOOPBACK = "http://127.0.0.1"


def operator_access() -> Access:
    """Everybody on this machine may act."""
    return Access(AccessSettings(local_role=Role.OPERATOR), Address("127.0.0.1", 0))


def page_client(app: Starlette) -> TestClient:
    """A browser on this machine, without a login. Its forms are those of a page; whether it may act is up to
    the application's ``Console.access``.
    """
    access: Access = app.state.console.access
    headers = {CSRF_HEADER: access.forms.make(LOCAL)}
    return TestClient(app, base_url=LOOPBACK, client=("127.0.0.1", 40_000), headers=headers)
