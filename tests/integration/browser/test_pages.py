"""Each page in a browser: wide and narrow, dark and light, without script, and as axe-core sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from support.browser import DESK, PHONE, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
DRY_RUN = urlencode(
    {"name": "orders", "metrics": "org.apache.kafka.", "interval.ms": "5000", "match": "client_id=orders-.*"}
)
LOOKS = [(DESK, False), (PHONE, True)]
"""Both widths and both color schemes: no rule of the style sheet depends on both."""
PAGES = {
    "fleet": "/",
    "fleet-groups": "/?group=software&state=live",
    "fleet-nothing": "/?client_id=nobody",
    "fleet-search": "/?q=client_id:orders-*+state:live&sort=-records",
    "groups": "/groups",
    "group": "/groups/billing-0",
    "topics": "/topics",
    "topic": "/topics/orders",
    "nodes": "/nodes",
    "node": "/nodes/1",
    "client": "/clients/orders-0",
    "consumer": "/clients/billing-0?window=2h&group=unit",
    "why": "/clients/orders-0/why",
    "why-consumer": "/clients/billing-0/why",
    "history": "/history",
    "upgrades": "/upgrades",
    "pushes": "/clients/orders-0/pushes",
    "runbook": "/runbook",
    "subscriptions": "/subscriptions",
    "subscription": "/subscriptions/edit?name=all-clients",
    "dry-run": f"/subscriptions/edit?{DRY_RUN}",
    "changes": "/subscriptions/changes",
    "quotas": "/quotas",
    "delivery": "/delivery",
    "programs": "/programs",
    "host": "/host",
}
REFUSED = {"missing": "/nothing-here", "bad-query": "/?sort=nothing"}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_fault(chromium: Browser, site: str, name: str) -> None:
    with visit(chromium, site) as window:
        window.open(PAGES[name])
        for width, is_dark in LOOKS:
            window.look(width, is_dark=is_dark)
            window.picture(f"page-{name}-{width}-{'dark' if is_dark else 'light'}")

            assert window.check() == [], (width, is_dark)
        window.picture(f"page-{name}-whole", whole=True)


@pytest.mark.parametrize("name", ["fleet", "client", "delivery"])
def test_a_page_says_the_same_without_script(chromium: Browser, site: str, name: str) -> None:
    with visit(chromium, site, has_script=False) as window:
        window.open(PAGES[name])
        headings = window.page.locator("h1").count()
        buttons = window.page.locator("button#live:visible").count()

        assert (headings, buttons) == (1, 0)
        assert window.faults == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_is_a_page_too(chromium: Browser, site: str, name: str) -> None:
    with visit(chromium, site, width=PHONE) as window:
        window.expected = "status of 40"
        response = window.page.goto(site + REFUSED[name])

        assert response is not None
        assert 400 <= response.status < 500
        assert window.page.inner_text("[role=alert]")
        assert window.check() == []
