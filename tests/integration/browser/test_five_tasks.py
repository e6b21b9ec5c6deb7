"""Five tasks of a person at three in the morning, by the text and the roles that the pages show.

Each takes at most three clicks from the first page, menus included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pytest

from support.browser import DESK, PHONE, Visit, visit
from support.tasks_scene import SLOWEST, subscriptions, three_in_the_morning, wait_until_gone

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from odradek.testing import RunningHost

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
CLICKS: Final = 3
DEAR: Final = ("everything-1", "everything-2")
"""Subscriptions that are too dear, one for each width of the window."""
TASK_MS: Final = 20_000
"""A task that takes longer fails."""


class Person:
    """Clicks and reads; a fourth click is refused."""

    def __init__(self, window: Visit) -> None:
        self.window, self.page, self.clicks = window, window.page, 0
        self.page.set_default_timeout(TASK_MS)
        window.open("/")

    def click(self, role: str, name: str, within: str = "") -> None:
        """Click on what has a role and a name, in the row that has a text."""
        self.clicks += 1
        assert self.clicks <= CLICKS, f"click {self.clicks}: {name}"
        place = self.page.get_by_role("row").filter(has_text=within) if within else self.page
        place.get_by_role(role, name=name, exact=True).first.click()

    def first_row(self, table: str) -> str:
        """The text of the first row of a table, without its heading."""
        found = self.page.get_by_role("table", name=table).get_by_role("row").nth(1)
        found.wait_for()
        return str(found.inner_text())

    def reads(self, pattern: str) -> str:
        """The text on the page that has a pattern."""
        found = self.page.get_by_text(re.compile(pattern)).first
        found.wait_for()
        return str(found.inner_text())


@pytest.fixture(scope="module")
def night() -> Iterator[tuple[str, RunningHost, list[str]]]:
    with three_in_the_morning(*DEAR) as found:
        yield found


@pytest.fixture(params=[DESK, PHONE])
def person(
    chromium: Browser, night: tuple[str, RunningHost, list[str]], request: pytest.FixtureRequest
) -> Iterator[Person]:
    with visit(chromium, night[0], width=request.param) as window:
        yield Person(window)
        window.picture(f"task-{request.node.originalname}-{request.param}", whole=True)
        assert window.faults == []


def test_the_slowest_consumer_of_a_group_and_its_cause(person: Person) -> None:
    person.click("link", "Groups")
    person.click("link", "billing")
    row = person.first_row("Members")
    person.click("link", SLOWEST)

    assert row.startswith(SLOWEST)
    assert person.reads("^Its application is slow") == (
        "Its application is slow: it spends 2% of its time in poll()."
    )


def test_what_all_late_clients_have_in_common(person: Person) -> None:
    assert person.reads("^behind: ") == "behind: group billing, 7 of 8 clients"


def test_whether_the_deploy_of_last_night_has_changed_anything(person: Person) -> None:
    person.click("link", "All changes, and what they have done")
    row = person.reads("4.3.0 → apache-kafka-java 4.4.0")

    assert row == "orders: apache-kafka-java 4.3.0 → apache-kafka-java 4.4.0, 2 instances"
    assert person.reads("latency 5 ms") == "latency 5 ms → 400 ms"


def test_which_gateway_has_lost_its_destination(
    person: Person, night: tuple[str, RunningHost, list[str]]
) -> None:
    person.click("link", "Delivery")
    row = person.first_row("Gateways and hosts")

    assert "gateway-b" in row
    assert "lost for 30 s" in row
    assert "otlp" in row
    person.click("link", "gateway-b")
    assert person.reads("has lost otlp") == "up, has lost otlp"
    assert person.reads("^http://127") == night[2][1]


def test_a_subscription_that_is_too_dear_is_stopped(
    person: Person, night: tuple[str, RunningHost, list[str]]
) -> None:
    name = next(each for each in DEAR if each in subscriptions(night[1]))
    person.click("link", "Subscriptions")
    person.click("link", name)
    person.click("button", f"Delete {name}")

    wait_until_gone(night[1], name)
