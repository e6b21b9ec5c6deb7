"""The totals of a host's forwarders are in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.hosting.active_plugin import ActivePlugin, activate
from odradek.hosting.forwarders import check_totals
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import ConfigError, Forwarder, PluginConfig
from odradek.temporality import CumulativeForwarder, TotalsSettings, read_totals
from support.spooling import FarSide, Plugin


def active(*forwarders: Forwarder) -> ActivePlugin:
    """A plugin with these forwarders."""
    plugins = HostPluginManager()
    plugins.add("fake", Plugin({str(number): each for number, each in enumerate(forwarders)}), "fake", "1")
    (found,) = activate(plugins, {}, frozenset())
    return found


def test_a_topic_of_totals_is_not_for_a_host() -> None:
    table = PluginConfig("plugins.otlp", {"temporality": "cumulative", "totals.topic": "totals"})
    settings = read_totals(table)
    assert settings is not None

    with pytest.raises(ConfigError, match=r"plugins\.otlp\.totals\.file: expected the path of a file"):
        check_totals(active(FarSide(), CumulativeForwarder(FarSide(), settings)))


def test_other_forwarders_need_none(tmp_path: Path) -> None:
    check_totals(
        active(FarSide(), CumulativeForwarder(FarSide(), TotalsSettings(file=tmp_path / "totals.db")))
    )
