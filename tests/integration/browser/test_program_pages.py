"""The pages of gateways and hosts in a browser: wide and narrow, dark and light, as axe-core sees them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from odradek_console.links import program_link
from support.browser import DESK, PHONE, visit
from support.tasks_scene import three_in_the_morning

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]
LOOKS = [(DESK, False), (DESK, True), (PHONE, False), (PHONE, True)]


@pytest.fixture(scope="module")
def night() -> Iterator[tuple[str, list[str]]]:
    with three_in_the_morning() as (url, _, gateways):
        yield url, gateways


@pytest.mark.parametrize("page", ["programs", "program", "delivery", "first"])
def test_a_page_has_no_fault(chromium: Browser, night: tuple[str, list[str]], page: str) -> None:
    url, (_, ill) = night
    paths = {"program": program_link(ill), "first": "/"}
    with visit(chromium, url) as window:
        window.open(paths.get(page, f"/{page}"))
        for width, is_dark in LOOKS:
            window.look(width, is_dark=is_dark)
            window.picture(f"{page}-{width}-{'dark' if is_dark else 'light'}", whole=True)

            assert window.check() == [], (width, is_dark)
        assert "gateway-b" in window.page.inner_text("main")
        assert window.faults == []
