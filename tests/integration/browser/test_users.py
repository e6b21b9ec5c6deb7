"""Users in a real browser: forms work without script, a viewer has none, a login leads to the page wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek_console.web.access import Access
from odradek_console.web.access_settings import AccessSettings
from support.browser import PHONE, visit
from support.consoles import LISTEN, console_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from odradek.testing import RunningHost

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
NAME = "from-the-browser"
TOKEN = "a-token-of-some-length"


def test_a_subscription_is_tried_created_and_deleted_without_script(chromium: Browser, site: str) -> None:
    with visit(chromium, site, has_script=False) as window:
        page = window.page
        window.open("/subscriptions")
        page.get_by_role("link", name="New subscription").click()
        page.get_by_role("textbox", name="Name", exact=True).fill(NAME)
        page.get_by_label("Metrics").fill("org.apache.kafka.producer.")
        page.get_by_label("Push interval").fill("5000")
        page.get_by_label("Match").fill("client_id=orders-[01]")
        page.get_by_role("button", name="Try it").click()
        tried = page.inner_text("section[aria-labelledby=tried] .counts")
        page.get_by_role("button", name="Create the subscription").click()
        page.wait_for_url("**/subscriptions")
        page.get_by_role("link", name=NAME).click()
        page.get_by_role("button", name=f"Delete {NAME}").click()
        page.wait_for_url("**/subscriptions")
        left = page.locator("td.name").all_inner_texts()

        assert tried.startswith("2 clients")
        assert NAME not in left
        assert window.faults == []


def test_a_viewer_logs_in_and_has_no_forms(
    chromium: Browser, watched_host: RunningHost, tmp_path: Path
) -> None:
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[[token]]\nname = "ann"\nrole = "viewer"\ntoken = "{TOKEN}"\n')
    tokens.chmod(0o600)
    access = Access(AccessSettings(tokens=tokens), LISTEN)
    with (
        console_site(watched_host.bootstrap, clients=5, access=access) as url,
        visit(chromium, url, width=PHONE) as window,
    ):
        window.expected = "status of 401"
        window.open("/clients/orders-0?window=2h")
        faults = window.check()
        window.picture("page-login")
        window.page.get_by_label("Token").fill("wrong")
        window.page.keyboard.press("Enter")
        refusal = window.page.inner_text("[role=alert]")
        window.page.get_by_label("Token").fill(TOKEN)
        window.page.keyboard.press("Enter")
        window.page.wait_for_url("**/clients/orders-0?window=2h")
        forms = window.page.locator("form[method=post]").all_inner_texts()
        user = window.page.inner_text("header .user")
        window.page.get_by_role("button", name="Log out").click()
        window.page.get_by_label("Token").wait_for()

        assert faults == window.faults == []
        assert refusal
        assert user == "ann, viewer"
        assert forms == ["Log out"]
