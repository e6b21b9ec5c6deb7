"""One browser for the tests of this folder, and a console with clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from odradek import testing
from support.browser import launched
from support.consoles import console_site
from support.working_clients import working_clients

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from odradek.testing import RunningHost

PRODUCERS = ["orders-0", "orders-1", "orders-2"]
CONSUMERS = ["billing-0", "billing-1"]


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """A headless Chromium, which ends with the last test here: its loop would disturb tests with asyncio."""
    with launched() as browser:
        yield browser


@pytest.fixture(scope="package")
def watched_host() -> Iterator[RunningHost]:
    """A host with clients that work and push."""
    with testing.host(telemetry_durability="log") as host:
        host.subscribe("*", interval_ms=1_000, name="all-clients")
        host.topics.create("orders")
        with working_clients(host.bootstrap, "orders", producers=PRODUCERS, consumers=CONSUMERS):
            yield host


@pytest.fixture(scope="package")
def site(chromium: Browser, watched_host: RunningHost) -> Iterator[str]:
    """The URL of a console at the host."""
    with console_site(watched_host.bootstrap, clients=len(PRODUCERS + CONSUMERS)) as url:
        yield url
