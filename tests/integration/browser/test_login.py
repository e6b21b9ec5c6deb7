"""Logging in and out in a browser, which decides what it sends: cookies, and the site of a form."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.client.admin import AdminClient
from odradek_console.view import View
from odradek_console.web.access import Access
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.console import make_console
from support.browser import DESK, PHONE, Visit, visit
from support.consoles import LISTEN, MANY, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
TOKEN = "a-token-for-looking-1"
NOBODY = "127.0.0.1:1"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[str]:
    """The URL of a console without a cluster, where users log in."""
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[token]]\nname = "ann"\nrole = "operator"\ntoken = "{TOKEN}"\n')
    access = Access(AccessSettings(tokens=tokens, requests_per_second=MANY), LISTEN)
    connect = partial(AdminClient, NOBODY)
    with served(make_console(View(connect), connect, NOBODY, access)) as url:
        yield url


def log_in(window: Visit, token: str) -> None:
    window.page.get_by_label("Token").fill(token)
    window.page.get_by_role("button", name="Log in").click()


def from_elsewhere(window: Visit, content: str) -> None:
    """Open a page of another site, and follow its link or send its form."""
    window.page.goto("about:blank")
    window.page.set_content(content)
    window.page.locator("#go").click()
    window.page.wait_for_url(f"{window.site}/**")


def test_a_person_logs_in_and_another_site_does_not(chromium: Browser, guarded: str) -> None:
    with visit(chromium, guarded) as window:
        window.open("/?q=orders&sort=client_id")
        for width, is_dark in ((DESK, False), (PHONE, True)):
            window.look(width, is_dark=is_dark)
            assert window.check() == []
        log_in(window, "wrong")
        alert = window.page.get_by_role("alert").inner_text()
        window.faults.clear()  # the browser reports the status 401 as an error
        log_in(window, TOKEN)
        window.page.wait_for_url("**/?q=orders&sort=client_id")
        (cookie,) = window.page.context.cookies()
        shown = window.page.locator("header").inner_text()

        from_elsewhere(window, f'<a id="go" href="{guarded}/?q=linked">a link in a message</a>')
        window.page.wait_for_url("**/?q=linked")
        linked = window.page.locator("header").inner_text()
        from_elsewhere(
            window, f'<form method="post" action="{guarded}/logout"><button id="go">win</button></form>'
        )
        foreign = window.page.locator("body").inner_text()
        window.faults.clear()
        window.open("/")
        assert window.check() == []
        window.page.get_by_role("button", name="Log out").click()
        window.page.wait_for_url("**/login")
        cookies = window.page.context.cookies()

    assert alert == "the token is wrong"
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert "ann, operator" in shown
    assert "ann, operator" in linked
    assert foreign.startswith("log in: ")
    assert cookies == []
