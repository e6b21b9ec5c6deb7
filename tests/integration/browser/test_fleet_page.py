"""The page of the fleet in a browser, with clients of librdkafka at a host."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support.browser import Visit, visit
from support.working_clients import working_clients

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from odradek.testing import RunningHost

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
CLIENTS = ["billing-0", "billing-1", "orders-0", "orders-1", "orders-2"]


def shown(window: Visit) -> list[str]:
    """The client ids in the table, in its order."""
    return [str(text) for text in window.page.locator("td.client_id").all_inner_texts()]


def wait_for(window: Visit, clients: list[str]) -> None:
    """Wait until the page shows these clients, without loading it again."""
    window.wait(lambda: sorted(shown(window)) == clients, lambda: shown(window))


def test_a_new_client_appears_by_itself(chromium: Browser, site: str, watched_host: RunningHost) -> None:
    with visit(chromium, site) as window:
        window.open("/?q=late")
        window.page.evaluate("document.body.dataset.first = 'yes'")
        window.page.fill("input[name=q]", "late")
        with working_clients(watched_host.bootstrap, "orders", producers=["late-0"]):
            wait_for(window, ["late-0"])

        assert window.page.evaluate("document.body.dataset.first") == "yes"
        assert window.focused() == "q"
        assert window.faults == []


def test_links_sort_by_keyboard_and_the_url_says_it(chromium: Browser, site: str) -> None:
    with visit(chromium, site) as window:
        window.open("/?state=live&client_id=!late*&q=-&sort=principal")
        wait_for(window, CLIENTS)
        equal = shown(window)
        window.page.keyboard.press("Tab")
        first = window.focused()
        window.page.keyboard.press("Enter")
        after_skip = window.page.evaluate("document.activeElement.id")
        window.page.get_by_role("link", name="Client", exact=True).focus()
        window.page.keyboard.press("Enter")
        window.page.wait_for_url("**sort=client_id**")

        assert (first, after_skip) == ("Skip to the content", "main")
        assert equal == shown(window) == CLIENTS
        assert window.page.locator("th[aria-sort=ascending]").inner_text() == "Client"
        assert window.faults == []


def test_the_worst_stay_open_and_a_figure_sorts_by_keyboard(chromium: Browser, site: str) -> None:
    with visit(chromium, site) as window:
        window.open("/")
        window.page.evaluate("document.getElementById('worst').dataset.first = 'yes'")
        window.page.locator("#worst summary").press("Enter")
        window.wait(lambda: window.page.locator("#worst[data-first]").count() == 0, "an update")
        opened = window.page.locator("#worst details[open]").count()
        window.page.get_by_role("link", name="Latency", exact=True).press("Enter")
        window.page.wait_for_url("**sort=-latency**")

        assert opened == 1
        assert window.page.locator("th[aria-sort=descending]").inner_text() == "Latency"
        assert window.check() == []


def test_the_form_works_without_script(chromium: Browser, site: str) -> None:
    with visit(chromium, site, has_script=False) as window:
        window.open("/")
        window.page.fill("input[name=q]", "billing")
        window.page.keyboard.press("Enter")
        window.page.wait_for_url("**q=billing**")
        found = shown(window)
        window.page.select_option("select[name=group]", "principal")
        window.page.get_by_role("button", name="Show").click()
        window.page.wait_for_url("**group=principal**")
        grouped = window.page.locator("td").all_inner_texts()

    assert sorted(found) == CLIENTS[:2]
    assert grouped[:5] == ["User:ANONYMOUS", "2", "2", "0", "0"]
