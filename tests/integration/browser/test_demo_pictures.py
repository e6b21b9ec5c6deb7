"""The pictures of README and of the how-to: pages of the demo's console."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from support.browser import DESK, PICTURES, visit
from support.demo_console import CLIENTS, PATIENCE_S, demo
from support.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.timeout(180),
    pytest.mark.skipif(PICTURES not in os.environ, reason=f"{PICTURES}=host/docs/pictures makes them"),
]
PUSHES = 60


def test_pictures_of_the_demo(chromium: Browser) -> None:
    with demo() as running, visit(chromium, running.url, width=DESK) as window:
        running.wait_for_the_finding()
        wait_until(lambda: running.pushes() > PUSHES, running.pushes, 2 * PATIENCE_S)
        window.page.set_viewport_size({"width": DESK, "height": 680})
        window.open("/")
        window.picture("console-fleet")
        window.page.set_viewport_size({"width": DESK, "height": 600})
        window.page.get_by_role("link", name=CLIENTS[2]).click()
        window.page.evaluate("document.getElementById('findings').scrollIntoView()")
        window.picture("console-client")

        assert window.check() == []
