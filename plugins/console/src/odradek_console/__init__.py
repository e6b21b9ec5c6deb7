"""The clients of a host or a cluster, as people look at them: inventory, last hours, findings."""

from __future__ import annotations

from odradek.plugin import Companion, PluginConfig, hookimpl


@hookimpl
def odradek_companion(config: PluginConfig) -> Companion | None:
    """Run the console beside the host if ``[plugins.console]`` has a ``listener``."""
    if not config.values:
        return None
    from odradek_console.companion import read_console  # imported here to keep hosts without it fast

    return read_console(config)
