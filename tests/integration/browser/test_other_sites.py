"""Requests of a real browser when another site links to a console or posts a form there."""

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
from support.browser import Visit, visit
from support.consoles import LISTEN, MANY, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
TOKEN = "a-token-for-looking-1"
NOBODY = "127.0.0.1:1"


@pytest.fixture
def access(tmp_path: Path) -> Access:
    """One user may log in."""
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[token]]\nname = "ann"\nrole = "operator"\ntoken = "{TOKEN}"\n')
    tokens.chmod(0o600)
    return Access(AccessSettings(tokens=tokens, requests_per_second=MANY), LISTEN)


@pytest.fixture
def guarded(access: Access) -> Iterator[str]:
    """The URL of a console without a cluster, where users log in."""
    connect = partial(AdminClient, NOBODY)
    with served(make_console(View(connect), connect, NOBODY, access)) as url:
        yield url


def log_in(window: Visit, path: str) -> None:
    """Open a page by way of the login."""
    window.open(path)
    window.page.get_by_label("Token").fill(TOKEN)
    window.page.keyboard.press("Enter")
    window.page.wait_for_url(f"**{path}")


def from_elsewhere(window: Visit, content: str) -> None:
    """Open a page of another site, and follow its link or send its form."""
    window.page.goto("about:blank")
    window.page.set_content(content)
    window.page.locator("#go").click()
    window.page.wait_for_url(f"{window.site}/**")


def test_a_link_from_elsewhere_finds_the_login_and_a_form_does_not(chromium: Browser, guarded: str) -> None:
    with visit(chromium, guarded) as window:
        log_in(window, "/?q=orders&sort=client_id")
        (cookie,) = window.page.context.cookies()

        from_elsewhere(window, f'<a id="go" href="{guarded}/?q=linked">a link in a message</a>')
        window.page.wait_for_url("**/?q=linked")
        linked = window.page.inner_text("header .user")
        from_elsewhere(
            window, f'<form method="post" action="{guarded}/logout"><button id="go">win</button></form>'
        )
        foreign = window.page.inner_text("body")
        window.open("/")
        window.page.get_by_role("button", name="Log out").click()
        window.page.wait_for_url("**/login")
        cookies = window.page.context.cookies()

    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert linked == "ann, operator"
    assert foreign.startswith("log in: ")
    assert cookies == []


def test_a_page_that_is_open_when_the_login_ends_asks_for_it(
    chromium: Browser, guarded: str, access: Access
) -> None:
    with visit(chromium, guarded) as window:
        log_in(window, "/?q=orders")
        access.sessions.sessions.clear()
        window.page.get_by_label("Token").wait_for()

        assert window.page.url == f"{guarded}/login?next=%2F%3Fq%3Dorders"


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/\\evil.example/", "/%2F/evil.example/", "/.//evil.example/"]
)
def test_a_link_from_elsewhere_leads_to_no_third_site(chromium: Browser, guarded: str, path: str) -> None:
    with visit(chromium, guarded) as window:
        from_elsewhere(window, f'<a id="go" href="{guarded}{path}">a link in a message</a>')
        window.page.get_by_label("Token").wait_for()
        window.page.get_by_label("Token").fill(TOKEN)
        window.page.keyboard.press("Enter")
        window.page.locator("header .user").or_(window.page.get_by_text("Not Found")).first.wait_for()

        assert window.page.url.startswith(f"{guarded}/")
        assert [each for each in window.faults if each.startswith("request to")] == []


def test_a_page_beyond_the_share_of_its_user_says_so(chromium: Browser, guarded: str, access: Access) -> None:
    access.streams.shares.most = 1
    with visit(chromium, guarded) as first:
        first.expected = "status of 503"
        log_in(first, "/")
        second = first.page.context.new_page()
        second.goto(f"{guarded}/?q=second")
        second.locator("#stale").wait_for(state="visible")

        assert "gets no updates now" in second.inner_text("#stale")
        assert first.page.locator("#stale").is_hidden()
