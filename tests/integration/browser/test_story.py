"""An incident: a slow consumer among twenty clients is found, watched, named by a finding, and left."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.lease import lease_end_s
from odradek.testing import RunningHost, VirtualClock
from support.browser import visit
from support.waiting import wait_until
from support.working_clients import working_clients

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(240)]
PRODUCERS = [f"orders-{number}" for number in range(12)]
CONSUMERS = [f"billing-{number}" for number in range(7)]
SLOW = "billing-7"
FINDING = "busy-application"
BEFORE_MS = 2_000
PATIENCE_S = 60
PROGRAMS = {
    "console": "from odradek_console.terminal.console import console; console()",
    "watch": "from odradek_console.terminal.watch import watch; watch()",
}


@contextmanager
def program(name: str, host: RunningHost, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a command of the console beside the host."""
    command = [sys.executable, "-c", PROGRAMS[name], "--bootstrap-server", host.bootstrap, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str], pattern: str) -> re.Match[str]:
    """Read lines up to the first one with a pattern."""
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(pattern, line):
            return found
    raise AssertionError(f"the program ended without {pattern}: {process.wait()}")


def leases(host: RunningHost) -> dict[str, dict[str, str]]:
    with AdminClient(host.bootstrap) as admin:
        found = read_subscriptions(admin)
    return {name: properties for name, properties in found.items() if lease_end_s(name) is not None}


def test_a_slow_consumer_is_found_watched_and_left(
    chromium: Browser, odradek_hosts: Callable[..., RunningHost]
) -> None:
    host = odradek_hosts(telemetry_durability="log")
    host.subscribe("*", interval_ms=BEFORE_MS)
    host.topics.create("orders")
    clients = working_clients(host.bootstrap, "orders", producers=PRODUCERS, consumers=CONSUMERS, slow=[SLOW])
    listen = ("--listen", "127.0.0.1:0", "--role", "operator")
    with clients, program("console", host, *listen) as process:
        url = said(process, r"odradek console ready (\S+)")[1]
        with visit(chromium, url) as window:
            window.open(f"/?notes={FINDING}")
            rows = window.page.locator("td.client_id")
            window.wait(lambda: rows.all_inner_texts() == [SLOW], rows.all_inner_texts)
            window.open("/")
            window.wait(lambda: rows.count() == 20, rows.count)
            window.picture("story-fleet")
            window.page.get_by_role("link", name=SLOW).click()
            heading = window.page.inner_text("h1")
            window.page.get_by_label("Push every").select_option("1")
            window.page.get_by_role("button", name="Watch").click()
            window.page.get_by_role("button", name="Stop watching").wait_for()
            (properties,) = leases(host).values()
            facts = window.page.locator("#facts")
            window.wait(lambda: "one every 1s" in facts.inner_text(), facts.inner_text)
            finding = window.page.locator("article.finding", has_text=FINDING)
            finding.wait_for()
            advice = finding.inner_text()
            window.picture("story-client")
            window.page.get_by_role("button", name="Stop watching").click()
            window.page.get_by_role("button", name="Watch", exact=True).wait_for()
            left = leases(host)
            window.wait(lambda: "one every 2s" in facts.inner_text(), facts.inner_text)

            assert heading == SLOW
            assert properties["interval.ms"] == "1000"
            assert properties["match"].startswith("client_instance_id=")
            assert "the application is too slow: look at its work for a record" in advice
            assert left == {}
            assert window.faults == []


def test_the_host_takes_back_what_a_killed_watcher_has_left(
    odradek_hosts: Callable[..., RunningHost],
) -> None:
    clock = VirtualClock()
    clock.mock.jump(int(time.time() * 1000) - clock.now_ms())
    host = odradek_hosts(telemetry_durability="log", clock=clock)
    host.subscribe("*", name="all")
    with program("watch", host, "--client-id", SLOW, "--for", "5m") as process:
        lease = said(process, r"Subscription (odradek-watch-\S+):")[1]
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE_S)
    clock.advance(5 * 60_000)
    held = leases(host)

    clock.advance(2 * 60_000)

    assert list(held) == [lease]
    wait_until(lambda: leases(host) == {}, "the end of the lease", PATIENCE_S)
