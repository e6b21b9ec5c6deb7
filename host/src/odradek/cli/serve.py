"""``odradek serve``: run a host until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import click

from odradek.cli.errors import CommandFailed
from odradek.server.config import HostConfig, load_config
from odradek.server.host import Host
from odradek.server.plugins.process import (
    freeze_garbage,
    keep_buffers,
    log_to_stderr,
    raise_descriptor_limit,
    run,
)


@click.command()
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="TOML file; host/docs/reference/configuration.md lists its keys.",
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
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="Lowest level to log on stderr.",
)
def serve(
    config_file: Path | None,
    overrides: tuple[str, ...],
    plugins: tuple[str, ...],
    recover_metadata: bool,
    log_level: str,
) -> None:
    """Run a host until SIGTERM or SIGINT. Once it accepts connections it prints one line:

    odradek ready listeners=PLAINTEXT://HOST:PORT[,...] node.id=N data=DIR
    """
    log_to_stderr(log_level)
    config = load_config(config_file, overrides, plugins)

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
            freeze_garbage()
            click.echo(ready_line(config, host))
            await stop.wait()
        finally:
            await host.stop()

    run(main)
    if failures:
        raise CommandFailed(f"odradek stopped: {failures[0]}")


def ready_line(config: HostConfig, host: Host) -> str:
    """The line that scripts wait for. Its addresses have the ports that were bound, never 0."""
    addresses = ",".join(str(replace(each.address, port=each.bound_port)) for each in host.listeners)
    return f"odradek ready listeners={addresses} node.id={config.broker.node_id} data={config.data_dir}"
