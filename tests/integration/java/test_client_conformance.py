"""Kafka's own clients, as the reference page reports them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from integration.java.jvm import Clients, Jvm
from odradek.testing import RunningHost
from odradek.testing.conformance import ConformanceReport

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
PATIENCE_S = 60
APPLICATION = "org.apache.kafka.stream.task.active.buffer.count"
TIMED = ("first push:", "interval:")
"""Rules that a busy machine breaks."""


@contextmanager
def living(jvm: Jvm, host: RunningHost, kind: str) -> Iterator[None]:
    """A client that is closed properly at the end."""
    arguments = (host.bootstrap, "reported", kind, kind)
    command = jvm.command("odradek.TelemetryClient", *arguments)
    with subprocess.Popen(command, stdin=subprocess.PIPE, text=True) as process:
        try:
            yield
            process.communicate("\n", timeout=PATIENCE_S)
        finally:
            process.kill()


def wrong(report: ConformanceReport) -> list[str]:
    """Findings that do not depend on the machine."""
    return [line for line in report.wrong if not line.startswith(TIMED)]


def reported(jvm: Jvm, host: RunningHost, kind: str) -> ConformanceReport:
    """A client that pushes twice, asks again after an unknown subscription, and pushes."""
    host.subscribe("org.apache.kafka.", interval_ms=1_000)
    host.topics.create("reported")
    with living(jvm, host, kind):
        host.telemetry.wait_for(client_id=kind, timeout_s=PATIENCE_S)
        host.fault("PushTelemetry", error="UNKNOWN_SUBSCRIPTION_ID").wait(PATIENCE_S)
        refused = host.telemetry.wait_for_push(error="UNKNOWN_SUBSCRIPTION_ID", timeout_s=PATIENCE_S)
        host.telemetry.wait_for(client_id=kind, after=refused, timeout_s=PATIENCE_S)
    return host.telemetry.conformance(kind)


@pytest.mark.parametrize("kind", ["producer", "consumer", "admin"])
def test_a_client_follows_the_kip(clients: Clients, odradek_host: RunningHost, kind: str) -> None:
    report = reported(clients.jvm, odradek_host, kind)

    verdicts = {row.rule: row.verdict for row in report.rules}
    assert (report.roles, wrong(report)) == ([kind], [])
    assert verdicts["UNKNOWN_SUBSCRIPTION_ID"] == "ok"
    assert report.metrics_sent > 40


def test_an_application_adds_its_own_metrics(clients: Clients, odradek_host: RunningHost) -> None:
    report = reported(clients.jvm, odradek_host, "application")

    assert (report.roles, wrong(report)) == (["consumer"], [])
    assert odradek_host.telemetry.wait_for(APPLICATION)[0].labels["task_id"] == "0_0"
