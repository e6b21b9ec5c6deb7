"""The hooks through which an Odradek host gets the parts of this plugin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from odradek.plugin import PluginConfig, hookimpl
from odradek.settings import TABLE, TEXT, Choice, declare, read_settings
from odradek_example.example_enricher import ExampleEnricher
from odradek_example.example_exporter import ExampleExporter
from odradek_example.example_forwarder import ExampleForwarder
from odradek_example.example_receiver import ExampleReceiver


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleSettings:
    """The table ``[plugins.example]``. Each key is declared once: type, bounds, default, meaning."""

    count: str = declare(
        "count",
        Choice({each: each for each in ("software", "intervals", "nothing")}),
        "software",
        "Whether pushes are counted by client software (a receiver), by push interval (an exporter), or not.",
    )
    teams: Mapping[str, str] = declare(
        "teams",
        TABLE,
        {},
        "The label `team` for the clients of a user; without any, the plugin offers no enricher.",
        unset="none",
    )
    path: str | None = declare(
        "path",
        TEXT,
        None,
        "File to which each push is appended as a line of JSON; without it, the plugin offers no forwarder.",
        unset="none",
    )


@hookimpl
def odradek_client_telemetry(config: PluginConfig) -> ExampleReceiver | ExampleExporter | None:
    """Return a receiver or an exporter: a plugin has one of them."""
    match read_settings(ExampleSettings, config).count:
        case "software":
            return ExampleReceiver()
        case "intervals":
            return ExampleExporter()
    return None


@hookimpl
def odradek_enricher(config: PluginConfig) -> ExampleEnricher | None:
    """Return an enricher if there is a table ``teams``."""
    teams = read_settings(ExampleSettings, config).teams
    return ExampleEnricher(teams) if teams else None


@hookimpl
def odradek_forwarder(config: PluginConfig) -> ExampleForwarder | None:
    """Return a forwarder that writes to ``path``; None if it is not set.

    Raises:
        ConfigError: The folder of the file does not exist.
    """
    text = read_settings(ExampleSettings, config).path
    if text is None:
        return None
    path = Path(text)
    if not path.parent.is_dir():
        raise config.error("path", f"expected a file in an existing folder, found {text!r}")
    return ExampleForwarder(path)
