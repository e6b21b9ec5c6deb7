"""A login at an OpenID provider in a real browser, which keeps strict cookies back on the way from there."""

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
from odradek_console.web.oidc_settings import OidcSettings
from support.browser import DESK, PHONE, visit
from support.consoles import LISTEN, MANY, served
from support.oidc_site import OLI
from support.openid_provider import CLIENT_ID, SECRET, OpenIdProvider, providing

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
NOBODY = "127.0.0.1:1"
ELSEWHERE = "127.0.0.2"
"""An address of this machine that is another site than 127.0.0.1."""


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with providing(ELSEWHERE) as found:
        found.claims, found.has_page = dict(OLI), True
        yield found


@pytest.fixture
def guarded(provider: OpenIdProvider, tmp_path: Path) -> Iterator[str]:
    """The URL of a console without a cluster, where users log in at the provider or with tokens."""
    secret, tokens = tmp_path / "secret", tmp_path / "tokens.toml"
    secret.write_text(SECRET)
    tokens.write_text('[[token]]\nname = "bob"\nrole = "viewer"\ntoken = "a-token-for-looking-1"\n')
    for file in (secret, tokens):
        file.chmod(0o600)
    oidc = OidcSettings(
        issuer=provider.issuer,
        client_id=CLIENT_ID,
        secret=secret,
        label="Example",
        operators=("admins",),
        timeout_s=60.0,
    )
    connect = partial(AdminClient, NOBODY)
    access = Access(AccessSettings(oidc=oidc, tokens=tokens, requests_per_second=MANY), LISTEN)
    with served(make_console(View(connect), connect, NOBODY, access)) as url:
        yield url


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [DESK, PHONE])
def test_the_page_for_logging_in_names_the_provider(
    chromium: Browser, guarded: str, width: int, is_dark: bool
) -> None:
    with visit(chromium, guarded, width=width, is_dark=is_dark) as window:
        window.open("/?q=orders")
        window.page.get_by_role("link", name="Log in with Example").wait_for()
        window.picture(f"login-{width}-{'dark' if is_dark else 'light'}")

        assert window.check() == []


def test_a_user_comes_back_from_the_provider_to_the_page_that_was_wanted(
    chromium: Browser, guarded: str, provider: OpenIdProvider
) -> None:
    with visit(chromium, guarded) as window:
        page = window.page
        window.open("/?q=orders")
        page.get_by_role("link", name="Log in with Example").click()
        page.wait_for_url(f"{provider.issuer}/authorize?*")
        page.get_by_role("link", name="I am ann").click()
        page.wait_for_url("**/?q=orders")
        user = page.inner_text("header .user")
        cookies = page.context.cookies(guarded)
        page.get_by_role("button", name="Log out").click()
        page.wait_for_url("**/login")
        left = page.context.cookies(guarded)

        assert user == "oli, operator"
        assert [(each["sameSite"], each["httpOnly"]) for each in cookies] == [("Strict", True)]
        assert left == []
        assert [each for each in window.faults if f"request to {provider.issuer}/" not in each] == []


def test_another_site_neither_begins_nor_ends_a_login(
    chromium: Browser, guarded: str, provider: OpenIdProvider
) -> None:
    with visit(chromium, guarded) as attacker, visit(chromium, guarded, width=PHONE) as window:
        attacker.open("/login")
        attacker.page.get_by_role("link", name="Log in with Example").click()
        back = attacker.page.get_by_role("link", name="I am ann").get_attribute("href")
        window.expected = "status of 401"
        for link in (f"{guarded}/login/provider", str(back)):
            window.page.goto("about:blank")
            window.page.set_content(f'<a id="go" href="{link.replace("&", "&amp;")}">a link in a message</a>')
            window.page.locator("#go").click()
            window.page.get_by_role("link", name="Log in with Example").wait_for()
        text = window.page.inner_text("[role=alert]")

        assert text.startswith("this login was not begun in this browser")
        assert window.page.context.cookies() == []
        assert "/token" not in provider.asked
        assert window.check() == []
