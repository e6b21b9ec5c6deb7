"""Totals of Java clients: of one whose subscription changes while it runs, and of one that sends them itself.

Only the client knows what it has counted, so no level below can show that nothing is missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.java.jvm import Jvm
from integration.java.totals_client import totals_client
from support.hosts import running_host
from support.otlp_collector import collecting
from support.totals_collector import NewestTotals, appended, kept, lost
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
CHANGES = 5
PATIENCE_S = 60
INTERVAL = "200"


def test_the_totals_of_a_producer_survive_changes_of_its_subscription(jvm: Jvm, tmp_path: Path) -> None:
    found = NewestTotals()

    with collecting() as collector:
        collector.mood = found
        settings = (
            f"plugins.otlp.endpoint={collector.url}",
            "plugins.otlp.temporality=cumulative",
            f"plugins.otlp.totals.file={tmp_path / 'totals.db'}",
            "plugins.otlp.batch.max.age.ms=20",
            # On a machine that stands still, a client may seem to push early.
            "telemetry.keep.byte.rate=10000000",
        )
        with running_host(tmp_path / "data", *settings) as host:
            telemetry = host.host.telemetry

            def change(number: int) -> None:
                """Ask for all metrics, each time with another subscription id."""
                metrics = "*" if number % 2 else "org.apache.kafka."
                properties = {"metrics": metrics, "interval.ms": INTERVAL}
                host.call(lambda: telemetry.update_subscription("all", properties))

            change(0)
            with totals_client(jvm, host.bootstrap, "producer") as client:
                for number in range(1, CHANGES + 1):
                    accepted, refused = appended(host), kept(host)
                    wait_until(lambda: appended(host) > accepted, "an accepted push", PATIENCE_S)  # noqa: B023
                    change(number)
                    wait_until(lambda: kept(host) > refused, "a kept push", PATIENCE_S)  # noqa: B023
                # A client that is closed before it has the new subscription id pushes with the old one.
                accepted = appended(host)
                wait_until(lambda: appended(host) > accepted, "a push of the last subscription", PATIENCE_S)
                wanted = client.totals()

            wait_until(lambda: not found.differences(wanted), lambda: found.differences(wanted), PATIENCE_S)
            assert lost(host) == {}

    assert len(wanted) > 30
    assert found.fallen == []
    assert {len(starts) for starts in found.starts.values()} == {1}


def test_a_consumer_that_is_asked_for_totals_sends_them(jvm: Jvm, tmp_path: Path) -> None:
    found = NewestTotals()

    with collecting() as collector:
        collector.mood = found
        settings = (
            f"plugins.otlp.endpoint={collector.url}",
            "plugins.otlp.batch.max.age.ms=20",
            "telemetry.delta.temporality=false",
            "subscriptions.all.metrics=*",
            f"subscriptions.all.interval.ms={INTERVAL}",
        )
        with (
            running_host(tmp_path / "data", *settings) as host,
            totals_client(jvm, host.bootstrap, "consumer") as client,
        ):
            wait_until(lambda: appended(host) > 5, "some pushes", PATIENCE_S)
            wanted = client.totals()
            wait_until(lambda: not found.differences(wanted), lambda: found.differences(wanted), PATIENCE_S)

    assert len(wanted) > 30
    assert found.fallen == []
    assert {len(starts) for starts in found.starts.values()} == {1}
