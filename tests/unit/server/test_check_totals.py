"""The totals of a host's forwarders are in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.plugin import ConfigError
from odradek.server.plugins.forwarders import check_totals
from odradek.temporality import CumulativeForwarder, TotalsSettings
from support.spooling import FarSide


def test_a_forwarder_with_totals_needs_a_file() -> None:
    with pytest.raises(ConfigError, match=r"plugins\.otlp\.totals\.file: expected the path of a file"):
        check_totals("otlp", CumulativeForwarder(FarSide(), TotalsSettings(topic="totals")))


def test_other_forwarders_need_none(tmp_path: Path) -> None:
    check_totals("otlp", FarSide())
    check_totals("otlp", CumulativeForwarder(FarSide(), TotalsSettings(file=tmp_path / "totals.db")))
