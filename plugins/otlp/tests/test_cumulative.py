"""Destinations with cumulative values."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import ConfigError, PluginConfig
from odradek.temporality import CumulativeForwarder
from odradek_otlp import odradek_forwarder
from odradek_otlp.otlp_forwarder import OtlpForwarder

ENDPOINT = "http://collector:4318"


def test_each_destination_chooses(tmp_path: Path) -> None:
    table = {
        "destinations.raw.endpoint": ENDPOINT,
        "destinations.sums.endpoint": ENDPOINT,
        "destinations.sums.temporality": "cumulative",
        "destinations.sums.totals.file": str(tmp_path / "sums.db"),
    }

    forwarders = odradek_forwarder(PluginConfig("plugins.otlp", table))

    assert isinstance(forwarders, dict)
    assert {name: type(each) for name, each in forwarders.items()} == {
        "raw": OtlpForwarder,
        "sums": CumulativeForwarder,
    }


def test_two_destinations_need_two_files(tmp_path: Path) -> None:
    file = str(tmp_path / "sums.db")
    table = {
        f"destinations.{name}.{key}": value
        for name in ("a", "b")
        for key, value in (("endpoint", ENDPOINT), ("temporality", "cumulative"), ("totals.file", file))
    }

    with pytest.raises(
        ConfigError, match=r"plugins\.otlp\.destinations\.b\.totals\.file: expected a file of its own"
    ):
        odradek_forwarder(PluginConfig("plugins.otlp", table))
