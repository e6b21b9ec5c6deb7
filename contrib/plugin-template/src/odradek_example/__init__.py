"""The hooks through which an Odradek host gets the parts of this plugin."""

from __future__ import annotations

from pathlib import Path

from odradek.plugin import PluginConfig, hookimpl
from odradek_example.example_enricher import ExampleEnricher
from odradek_example.example_exporter import ExampleExporter
from odradek_example.example_forwarder import ExampleForwarder
from odradek_example.example_receiver import ExampleReceiver


@hookimpl
def odradek_client_telemetry(config: PluginConfig) -> ExampleReceiver | ExampleExporter | None:
    """Return a receiver or an exporter: a plugin has one of them."""
    match config.choice("count", "software", ("software", "intervals", "nothing")):
        case "software":
            return ExampleReceiver()
        case "intervals":
            return ExampleExporter()
    return None


@hookimpl
def odradek_enricher(config: PluginConfig) -> ExampleEnricher | None:
    """Return an enricher if there is a table ``teams``."""
    teams = config.table("teams")
    return ExampleEnricher(teams) if teams else None


@hookimpl
def odradek_forwarder(config: PluginConfig) -> ExampleForwarder | None:
    """Return a forwarder that writes to ``path``; None if it is not set.

    Raises:
        ConfigError: The folder of the file does not exist.
    """
    text = config.text("path")
    if text is None:
        return None
    path = Path(text)
    if not path.parent.is_dir():
        raise config.error("path", f"expected a file in an existing folder, found {text!r}")
    return ExampleForwarder(path)
