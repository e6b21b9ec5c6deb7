"""``odradek serve``: run a host until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from odradek.cli.errors import CommandFailed
from odradek.server.config import REFERENCE, HostConfig, load_config
from odradek.server.config_check import check
from odradek.server.host import Host
from odradek.server.log_format import FORMATTERS, log_to_stderr
from odradek.server.plugins.process import (
    freeze_garbage,
    keep_buffers,
    on_hangup,
    raise_descriptor_limit,
    run,
)
from odradek.server.reload import reload
from odradek.server.standard_streams import silence
from odradek.server.start_report import report

log = logging.getLogger(__name__)


@click.command(epilog=f"\b\nAll keys of the configuration:\n  {REFERENCE}")
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file; the page below lists its keys.",
)
@click.option(
    "--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key; may be repeated."
)
@click.option(
    "--plugin", "plugins", multiple=True, metavar="NAME", help="Activate a plugin; may be repeated."
)
@click.option(
    "--recover-metadata",
    is_flag=True,
    help="If metadata.db is lost or damaged, rebuild the topics from their partitions.",
)
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Check the configuration and exit; opens no port and changes no file.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Lowest level to log on stderr.",
)
@click.option(
    "--log-format",
    type=click.Choice(list(FORMATTERS)),
    default="text",
    show_default=True,
    help="Form of the log on stderr; json is one object per line.",
)
def serve(
    config_file: Path | None,
    overrides: tuple[str, ...],
    plugins: tuple[str, ...],
    recover_metadata: bool,
    only_check: bool,
    log_level: str,
    log_format: str,
) -> None:
    """Run a host until SIGTERM or SIGINT. Once it accepts connections it prints one line:

    odradek ready listeners=PLAINTEXT://HOST:PORT[,...] node.id=N data=DIR

    SIGHUP reloads the subscriptions of the file, and the tables of plugins that can take a new one.
    """
    log_to_stderr(log_level, log_format)
    config = load_config(config_file, overrides, plugins)
    if only_check:
        for line in check(config):
            click.echo(line)
        return

    failures: list[str] = []

    async def main(stop: asyncio.Event) -> None:
        def failed(reason: str) -> None:
            failures.append(reason)
            stop.set()

        keep_buffers()
        raise_descriptor_limit()
        host = Host(config, recover_metadata=recover_metadata, failed=failed)
        try:
            await host.start()
            read = partial(load_config, config_file, overrides, plugins)
            on_hangup(partial(reload_file, host, config_file, read), stop)
            freeze_garbage()
            report(host, config_file, log_level)
            announce(ready_line(config, host))
            await stop.wait()
        finally:
            await host.stop()

    run(main)
    if failures:
        raise CommandFailed(f"odradek stopped: {failures[0]}")


def reload_file(host: Host, config_file: Path | None, read: Callable[[], HostConfig]) -> None:
    """Reload the configuration, if there is a file that can have changed."""
    if config_file is None:
        log.warning("nothing to reload: the host was started without --config")
    else:
        reload(host, read)


def announce(line: str) -> None:
    """Print the ready line. Without a stdout the host serves all the same."""
    try:
        click.echo(line)
    except OSError as error:
        silence(sys.stdout)
        log.warning("stdout cannot take the ready line", extra={"problem": error.strerror})


def ready_line(config: HostConfig, host: Host) -> str:
    """The line that scripts wait for. Its addresses have the ports that were bound, never 0."""
    addresses = ",".join(host.addresses)
    return f"odradek ready listeners={addresses} node.id={config.broker.node_id} data={config.data_dir}"
