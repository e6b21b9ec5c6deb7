"""kafka-consumer-groups.sh and a forwarder: it shows the forwarder's lag, and resets its offsets while it
runs.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from integration.java.jvm import Jvm
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import Forwarder, PluginConfig, Retry, TelemetryRecord, hookimpl
from support.accounts import assert_accounts_balance
from support.hosts import EVERYTHING, running_host
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
GROUP = "odradek.forwarder.fake"
COMMAND = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
PATIENCE_S = 60


class FarSide:
    """Refuses batches until it is opened."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.taken = 0

    @hookimpl
    def odradek_forwarder(self, config: PluginConfig) -> Forwarder:
        return self

    async def start(self) -> None:
        """Nothing to prepare."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        if not self.open.is_set():
            raise Retry("down")
        self.taken += len(batch)

    async def close(self) -> None:
        """Nothing to release."""


def lag(jvm: Jvm, bootstrap: str) -> str:
    """The column LAG of the only partition."""
    done = jvm.run(COMMAND, "--bootstrap-server", bootstrap, "--describe", "--group", GROUP)
    row = next(line.split() for line in done.out.splitlines() if line.startswith(GROUP))
    return row[5]


def test_the_lag_is_shown_and_the_offsets_can_be_reset(jvm: Jvm, tmp_path: Path) -> None:
    far = FarSide()
    plugins = HostPluginManager()
    plugins.add("fake", far, "fake", "1")
    quick = ("plugins.fake.retry.backoff.max.ms=500", "plugins.fake.batch.max.age.ms=20")

    with (
        running_host(tmp_path, *EVERYTHING, *quick, "telemetry.lag=none", plugins=plugins) as host,
        WireClient(host.address) as client,  # it stays: a client that closes has a last record
    ):
        client.introduce()
        assert [client.push(b"") for _ in range(7)] == [0] * 7
        behind = lag(jvm, host.bootstrap)
        far.open.set()
        wait_until(lambda: far.taken == 7, lambda: far.taken)
        caught_up = lag(jvm, host.bootstrap)
        reset = ("--reset-offsets", "--group", GROUP, "--all-topics", "--to-offset", "2", "--execute")
        jvm.run(COMMAND, "--bootstrap-server", host.bootstrap, *reset)
        wait_until(lambda: far.taken == 12, lambda: far.taken)
        host.call(lambda: assert_accounts_balance(host.host))

    assert (behind, caught_up) == ("7", "0")
