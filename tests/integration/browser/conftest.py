"""One browser for the tests of this folder, and a console with clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from odradek import testing
from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.client.producer import Producer
from odradek.plugin import ClientQuotaEntity
from odradek.wire.record import Record
from odradek_console.view import TOPIC
from support.browser import launched
from support.consoles import console_site
from support.working_clients import working_clients

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from odradek.testing import RunningHost

DEAD_LETTERS = f"{TOPIC}_dead_letter"
LETTERS_MS = 1_790_000_000_000
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
        administer(host)
        with working_clients(host.bootstrap, "orders", producers=PRODUCERS, consumers=CONSUMERS):
            yield host


def administer(host: RunningHost) -> None:
    """Set quotas, and leave the traces of a forwarder that waits and has given pushes up."""
    headers = (
        ("client_id", b"orders-1"),
        ("dead_letter_reason", b"HTTP 400: the collector refused a data point"),
        ("dead_letter_forwarder", b"otlp"),
        ("dead_letter_partition", b"0"),
        ("dead_letter_offset", b"7"),
    )
    letters = [
        Record(b"AQEBAQEBAQEBAQEBAQEBAQ", b"x", timestamp_ms=LETTERS_MS + 1_000 * number, headers=headers)
        for number in range(3)
    ]
    with AdminClient(host.bootstrap) as admin:
        Producer(admin).send({(DEAD_LETTERS, 0): letters})
        admin.offset_commit("odradek.forwarder.otlp", {(TOPIC, 0): CommittedOffset(0)})
        admin.alter_client_quotas(
            {
                ClientQuotaEntity(client_id=None): {"producer_byte_rate": 2_000_000.0},
                ClientQuotaEntity(user="ANONYMOUS", client_id="orders-1"): {"producer_byte_rate": 50_000.0},
            }
        )


@pytest.fixture(scope="package")
def site(chromium: Browser, watched_host: RunningHost) -> Iterator[str]:
    """The URL of a console at the host."""
    with console_site(watched_host.bootstrap, clients=len(PRODUCERS + CONSUMERS)) as url:
        yield url
