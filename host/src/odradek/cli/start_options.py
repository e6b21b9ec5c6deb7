"""The options that all commands share that run until they are stopped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.errors import CommandFailed
from odradek.cli.usage import options_of
from odradek.endpoints.log_lines import FORMATTERS
from odradek.process.log_format import LEVELS

if TYPE_CHECKING:
    from odradek.cli.check_report import CheckReport

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
check_option = click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Say what the configuration means, check this machine and the cluster, and exit; changes nothing. "
    "The status is 1 if a check fails.",
)
"""``--check`` of a program in front of a cluster."""


def tell(program: str, report: CheckReport) -> None:
    """Print the report of ``--check``.

    Raises:
        CommandFailed: A check failed.
    """
    for line in report.lines():
        click.echo(line)
    if report.failed:
        checks = "1 check" if report.failed == 1 else f"{report.failed} checks"
        raise CommandFailed(f"odradek {program} --check: {checks} failed")
