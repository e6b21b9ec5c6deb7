"""An incident: a slow consumer among others is found, watched, and its subscription is taken back."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
import pytest
from click.testing import CliRunner

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import read_subscriptions
from odradek.client.errors import RequestFailed
from odradek.client.lease import lease_end_s, lease_name
from odradek.testing import RunningHost, VirtualClock
from odradek_console.reading.leases import clear, exactly, grant, new_name
from odradek_console.terminal.clients import clients
from odradek_console.terminal.watch import take_back, watch
from support.waiting import wait_until
from support.working_clients import working_clients

pytestmark = [pytest.mark.timeout(120), pytest.mark.ci]
PATIENCE_S = 60
IDLE = "org.apache.kafka.consumer.poll.idle.ratio."
CALM = 5
PROGRAM = "from odradek_console.terminal.watch import watch; watch()"


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(telemetry_durability="log")


def leases(host: RunningHost) -> dict[str, dict[str, str]]:
    with AdminClient(host.bootstrap) as admin:
        found = read_subscriptions(admin)
    return {name: properties for name, properties in found.items() if lease_end_s(name) is not None}


@contextmanager
def watching(host: RunningHost, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", PROGRAM, "--bootstrap-server", host.bootstrap, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], pattern: str) -> list[str]:
    """The lines up to the one with a pattern."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.rstrip())
        if re.search(pattern, line):
            return lines
    raise AssertionError(f"no line with {pattern}: {lines}")


@pytest.mark.slow  # the finding needs ten seconds of a slow application
def test_a_slow_consumer_is_found_watched_and_left(host: RunningHost) -> None:
    host.subscribe(IDLE, interval_ms=1_000)
    host.topics.create("orders")
    calm = [f"billing-{number}" for number in range(1, CALM)]
    with working_clients(host.bootstrap, "orders", consumers=calm, slow=["billing-0"]):

        def found() -> list[str]:
            arguments = [
                "--bootstrap-server",
                host.bootstrap,
                "--json",
                "--filter",
                "notes=busy-application",
            ]
            result = CliRunner().invoke(clients, arguments)
            return [json.loads(line)["client_id"] for line in result.output.splitlines()]

        wait_until(lambda: found() == ["billing-0"], "the slow consumer", PATIENCE_S)
        with watching(host, "--client-id", "billing-0", "--interval", "500ms", "--for", "5m") as process:
            first = read_until(process, "Subscription odradek-watch-")
            (lease,) = leases(host).items()
            read_until(process, "busy-application")
            process.send_signal(signal.SIGINT)
            last = read_until(process, "Deleted the subscription")
            status = process.wait(PATIENCE_S)

    assert "client_id=billing\\-0" in first[-1]
    assert lease[1]["interval.ms"] == "500"
    assert lease[0] in last[-1]
    assert status != 0
    assert leases(host) == {}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_watcher_that_is_ended(host: RunningHost, ending: signal.Signals) -> None:
    host.subscribe("*")
    with watching(host, "--client-id", "x", "--for", "5m", "--interval", "100ms") as process:
        read_until(process, "Subscription odradek-watch-")
        process.send_signal(ending)
        process.wait(PATIENCE_S)

    left = leases(host)

    assert len(left) == (1 if ending is signal.SIGKILL else 0)
    assert all((lease_end_s(name) or 0) - time.time() < 6 * 60 + 5 for name in left)


def test_a_watcher_goes_on_after_its_host_has_restarted(host: RunningHost) -> None:
    host.subscribe("*")
    with watching(host, "--client-id", "x", "--for", "5m", "--interval", "100ms") as process:
        read_until(process, "Subscription odradek-watch-")
        host.stop()
        read_until(process, "refused|closed")
        host.restart()
        for _ in range(3):
            read_until(process, "^..:..:..  0 clients$")
        process.send_signal(signal.SIGTERM)
        read_until(process, "Deleted the subscription odradek-watch-")

    assert leases(host) == {}


def test_a_watcher_that_cannot_take_its_subscription_back_says_who_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("odradek_console.terminal.watch.time.sleep", lambda seconds: None)

    with pytest.raises(click.ClickException) as caught:
        take_back(lambda: AdminClient("127.0.0.1:1", timeout_s=0.2), lease_name(1_767_268_800, "a"))

    assert "odradek-watch-1767268800-a was not deleted" in caught.value.message
    assert "deletes it after 12:00:00 UTC" in caught.value.message


def test_a_subscription_that_is_refused_is_not_taken_back(host: RunningHost) -> None:
    arguments = ["--bootstrap-server", host.bootstrap, "--client-id", "x", "--interval", "50ms"]
    host.subscribe("*")

    result = CliRunner().invoke(watch, arguments)

    assert isinstance(result.exception, RequestFailed)
    assert "Deleted" not in result.output
    assert leases(host) == {}


def test_a_host_deletes_a_lease_that_has_ended(odradek_hosts: Callable[..., RunningHost]) -> None:
    clock = VirtualClock()
    host = odradek_hosts(clock=clock)
    with AdminClient(host.bootstrap) as admin:
        grant(admin, "*", 1_000, exactly("client_id", ["x"]), new_name(clock.now_ms() // 1000 + 60))
    clock.advance(50_000)
    before = len(leases(host))

    clock.advance(30_000)

    assert before == 1
    assert leases(host) == {}


def test_the_next_command_deletes_leases_that_have_ended(host: RunningHost) -> None:
    now_s = time.time()
    host.subscribe("*", name="kept")
    ended, held = lease_name(int(now_s) - 5, "a"), lease_name(int(now_s) + 500, "b")
    host.subscribe("*", name=ended)
    host.subscribe("*", name=held)

    with AdminClient(host.bootstrap) as admin:
        cleared = clear(admin, now_s)
        left = set(read_subscriptions(admin))

    assert cleared == [ended]
    assert left == {"kept", held}


def test_values_are_taken_literally_in_patterns() -> None:
    assert exactly("client_id", ["a.b,c"]) == "client_id=a\\.b.c"
    assert exactly("client_id", ["a", "b"]) == "client_id=(a|b)"
