"""The contract kit of the host: remote write to a receiver that can be stopped, slow, or refuse."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from odradek.plugin import PluginConfig
from odradek.testing.contracts import FarSideState, ForwarderContract, Subject
from odradek_prometheus import odradek_forwarder
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from support.otlp_collector import Collector, Exchange, collecting
from support.remote_write_receiver import StoringReceiver, answering

SLOW_S = 0.4
BUDGET_MS = 1_000
"""A busy machine lets another program run for longer than the 100 ms of a forwarder's loop."""


class ReceiverSide:
    """A receiver; while it is down, its port is closed."""

    def __init__(self, collector: Collector) -> None:
        self.collector = collector
        self.receiver = StoringReceiver()
        self.collector.mood = self.take

    def take(self, exchange: Exchange) -> None:
        self.receiver(exchange)

    def take_slowly(self, exchange: Exchange) -> None:
        time.sleep(SLOW_S)
        self.receiver(exchange)

    def turn(self, state: FarSideState) -> None:
        if state is FarSideState.DOWN:
            self.collector.down()
            return
        self.collector.mood = {
            FarSideState.UP: self.take,
            FarSideState.SLOW: self.take_slowly,
            # Of samples that it never stores, a receiver tells a number only: they count as delivered.
            FarSideState.REFUSING: answering(403, "no"),
        }[state]
        self.collector.up()

    def received(self) -> Iterable[bytes]:
        """The descriptions of the metrics, which have the clients' names of them."""
        with self.receiver.lock:
            return [help_text.encode() for _, help_text, _ in self.receiver.about.values()]


class TestRemoteWrite(ForwarderContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Iterator[Subject]:
        with collecting() as collector:
            table = {
                "remote_write.url": f"{collector.url}/api/v1/write",
                "remote_write.totals.file": str(tmp_path / "totals.db"),
            }

            def make() -> object:
                forwarders = odradek_forwarder(PluginConfig("plugins.prometheus", table))
                assert isinstance(forwarders, dict)
                forwarder = forwarders["remote_write"]
                assert isinstance(forwarder, RemoteWriteForwarder)
                return forwarder

            yield Subject(
                make=make,
                far_side=ReceiverSide(collector),
                budget_ms=BUDGET_MS,
                patience_s=30,
                limit_s=90,
            )
