"""A host inside another program, on that program's event loop: `odradek.run`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any

from odradek.hosting.requested_plugins import by_name, tables_of
from odradek.programs.config import parse, read_values
from odradek.programs.config_secrets import with_references
from odradek.programs.host import Host
from odradek.programs.program_keys import Program, check_config
from odradek.settings.toml_file import flatten


class EmbeddedHost:
    """A host that `odradek.run` has started. Use it on its event loop."""

    def __init__(self, host: Host, failure: asyncio.Future[str]) -> None:
        self.host = host
        """The host itself, which may change with each release."""
        self.failure = failure

    @property
    def bootstrap(self) -> str:
        """The first listener, for a client's ``bootstrap.servers``."""
        listener = self.host.listeners[0]
        return listener.address.nearby(listener.bound_port)

    @property
    def listeners(self) -> list[str]:
        """The listeners, as ``NAME://HOST:PORT`` with the ports that were bound."""
        return self.host.addresses

    @property
    def data_dir(self) -> Path:
        """The directory of its data."""
        return self.host.config.data_dir

    async def failed(self) -> str:
        """Wait until the host can do nothing any more, such as after its last disk has failed.

        Returns:
            The reason. The program should leave the ``async with`` then.
        """
        return await asyncio.shield(self.failure)


@asynccontextmanager
async def run(
    config: Mapping[str, object] | str | os.PathLike[str] | None = None,
    *,
    plugins: Mapping[Any, object] | Iterable[object] = (),
) -> AsyncIterator[EmbeddedHost]:
    """Run a host on the event loop of this program: ``async with odradek.run(config) as host``.

    It does what ``odradek serve`` does, but for the log, the signals and the settings of the process, which
    belong to the program. Whatever blocks the loop holds up the clients of the host, and the reverse.

    Args:
        config: The keys of the configuration with their values, nested or dotted: ``{"data.dir": "data",
            "plugins": {"otlp": {"endpoint": "..."}}}``; or the path of a TOML file; None for the defaults,
            which listen on port 9092 of this machine and keep data in ``odradek-data``.
        plugins: Plugins to activate besides the installed ones: names, and others as they are: an object with
            hooks, its class, a module, or the path of a file. With tables it is a mapping: ``{TeamPlugin:
            {"unknown": "nobody"}}``.

    Yields:
        The host. At the end of the block it answers the requests that wait, lets forwarders flush within
        ``shutdown.timeout.ms``, and closes everything.

    Raises:
        ConfigError: A key, a value, a plugin, a file or a certificate is not usable, or a port is in use.
    """
    named, tables = by_name(plugins), flatten({"plugins": tables_of(plugins)})
    if config is None or isinstance(config, Mapping):
        values = with_references(
            {
                key: os.fspath(value) if isinstance(value, os.PathLike) else value
                for key, value in flatten(config or {}).items()
            },
            os.environ,
        )
    else:
        values = read_values(Path(config), ())
    requested = [name if source is None else source for name, source in named.items()]
    failure: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    read = parse({**values, **tables}, requested)
    check_config(Program.SERVE, read)
    with read.secrets.hidden_in_errors():
        host = Host(read, failed=lambda reason: None if failure.done() else failure.set_result(reason))
        async with started(host):
            yield EmbeddedHost(host, failure)


@asynccontextmanager
async def started(host: Host) -> AsyncIterator[None]:
    """Start a host, and stop it after the body of the statement, whatever happens in it.

    It follows the subscriptions of a cluster meanwhile, if its configuration says so.

    Raises:
        ConfigError: See `Host.start`.
    """
    try:
        async with followed(host):
            await host.start()
            yield
    finally:
        await host.stop()


def followed(host: Host) -> AbstractAsyncContextManager[None]:
    """Follow the subscriptions of a cluster in the body of the statement, if the configuration says so."""
    settings = host.config.follow
    if not settings.servers:
        return nullcontext()
    from odradek.programs.followed_cluster import following  # the client, which other hosts do not need

    return following(host, settings)
