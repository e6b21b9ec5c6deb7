"""One browser for the tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from support.browser import launched

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A headless Chromium, which ends with the last test here: its loop would disturb tests with asyncio."""
    with launched() as browser:
        yield browser
