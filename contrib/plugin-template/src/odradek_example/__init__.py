"""The hooks by which an Odradek host finds what this plugin offers."""

from __future__ import annotations

from pathlib import Path

from odradek.plugin import PluginConfig, hookimpl
from odradek_example.example_forwarder import ExampleForwarder
from odradek_example.example_receiver import ExampleReceiver


@hookimpl
def odradek_client_telemetry(config: PluginConfig) -> ExampleReceiver | None:
    """Reads ``receiver``."""
    return ExampleReceiver() if config.boolean("receiver", default=True) else None


@hookimpl
def odradek_forwarder(config: PluginConfig) -> ExampleForwarder | None:
    """Reads ``path``; without it there is no forwarder.

    Raises:
        ConfigError: The folder of the file is not there.
    """
    text = config.text("path")
    if text is None:
        return None
    path = Path(text)
    if not path.parent.is_dir():
        raise config.error("path", f"expected a file in a folder that is there, found {text!r}")
    return ExampleForwarder(path)
