"""Pages keep themselves up to date: they pause, let go of the server when hidden, and say when it is away."""

from __future__ import annotations

import re
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from contrib.capture.ports import free_port

from support.browser import Visit, visit
from support.consoles import console_site

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from odradek.testing import RunningHost

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
HIDE = """(hidden) => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


CLIENT = "/clients/orders-0"
COUNT = re.compile(r"(\d+), one every")


def pushes(window: Visit) -> int:
    """The pushes of the client of the page."""
    found = COUNT.search(window.page.locator("#facts").inner_text())
    assert found is not None
    return int(found[1])


def test_updates_are_paused_and_resumed(chromium: Browser, site: str) -> None:
    with visit(chromium, site) as window:
        window.open(CLIENT)
        before = pushes(window)
        window.wait(lambda: pushes(window) > before, "an update")
        with window.page.expect_event("requestfailed", lambda request: "/events" in request.url):
            window.page.get_by_role("button", name="Pause updates").press("Enter")
        focused = window.focused()
        window.page.get_by_role("button", name="Resume updates").press("Enter")
        paused = pushes(window)
        window.wait(lambda: pushes(window) > paused, "an update after the pause")

        assert focused == "Resume updates"
        assert window.faults == []


def test_a_summary_keeps_the_focus_and_stays_open(chromium: Browser, site: str) -> None:
    with visit(chromium, site) as window:
        window.open(CLIENT)
        window.page.evaluate("document.getElementById('panels').dataset.first = 'yes'")
        window.page.locator("#panels summary").first.press("Enter")
        window.wait(lambda: window.page.locator("#panels[data-first]").count() == 0, "an update")

        assert window.page.evaluate("document.activeElement.matches('#panels details[open] > summary')")
        assert window.faults == []


def test_a_hidden_page_holds_no_connection(chromium: Browser, site: str) -> None:
    with visit(chromium, site) as window:
        window.open(CLIENT)
        with window.page.expect_event("requestfailed", lambda request: "/events" in request.url):
            window.page.evaluate(HIDE, True)
        before = pushes(window)
        window.page.evaluate(HIDE, False)
        window.wait(lambda: pushes(window) > before, "an update when it is seen again")

        assert window.faults == []


def test_a_page_says_that_the_console_is_away(chromium: Browser, watched_host: RunningHost) -> None:
    with ExitStack() as running, visit(chromium, "") as window:
        port = free_port()
        window.site = running.enter_context(console_site(watched_host.bootstrap, clients=5, port=port))
        window.open(CLIENT)
        before = pushes(window)
        running.close()
        window.page.locator("#stale").wait_for(state="visible")
        running.enter_context(console_site(watched_host.bootstrap, clients=5, port=port))
        window.page.locator("#stale").wait_for(state="hidden")
        window.wait(lambda: pushes(window) > before, "an update of the new console")
        running.close()
