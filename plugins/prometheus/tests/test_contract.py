"""The contract kit of the host: the destination that Prometheus scrapes."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import PluginConfig
from odradek.testing.contracts import ForwarderContract, Subject
from odradek_prometheus import odradek_forwarder

BUDGET_MS = 1_000
"""A batch waits for the disk, which a machine with other work may keep busy."""


class TestScrape(ForwarderContract):
    @pytest.fixture
    def subject(self, tmp_path: Path) -> Subject:
        table = {"listener": "http://127.0.0.1:0", "totals.file": str(tmp_path / "totals.db")}

        def make() -> object:
            forwarders = odradek_forwarder(PluginConfig("plugins.prometheus", table))
            assert isinstance(forwarders, dict)
            return forwarders["scrape"]

        return Subject(make=make, budget_ms=BUDGET_MS, limit_s=90)
