"""The contract kit of the host, run on this plugin."""

from __future__ import annotations

import pytest

from odradek.plugin import PluginConfig
from odradek.testing.contracts import EnricherContract, Subject
from odradek_enrich import odradek_enricher


class TestEnricher(EnricherContract):
    @pytest.fixture
    def subject(self) -> Subject:
        table = {"static.team": "payments"}
        return Subject(make=lambda: odradek_enricher(PluginConfig("plugins.enrich", table)))
