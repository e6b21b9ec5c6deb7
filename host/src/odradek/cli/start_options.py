"""The options that all commands share that run until they are stopped."""

from __future__ import annotations

from pathlib import Path

import click

from odradek.cli.usage import options_of
from odradek.endpoints.log_lines import FORMATTERS
from odradek.process.log_format import LEVELS

config_options = options_of(
    click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML file; the reference of the configuration lists its keys.",
    ),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="KEY=VALUE",
        help="Override one key; may be repeated.",
    ),
    click.option(
        "--plugin",
        "plugins",
        multiple=True,
        metavar="NAME|FILE",
        help="Activate an installed plugin, or that of a Python file; may be repeated.",
    ),
)
"""``--config``, ``--set`` and ``--plugin``."""

log_options = options_of(
    click.option(
        "--log-level",
        type=click.Choice(list(LEVELS)),
        default="info",
        show_default=True,
        help="Lowest level to log on stderr.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(list(FORMATTERS)),
        default="text",
        show_default=True,
        help="Form of the log on stderr; json is one object per line.",
    ),
)
"""``--log-level`` and ``--log-format``."""
