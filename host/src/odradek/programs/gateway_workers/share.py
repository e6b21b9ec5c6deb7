"""The part of one worker in the configuration of a gateway."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from odradek.bounds.path_kind import exists
from odradek.gateway.gateway_settings import WORKERS
from odradek.hosting.active_plugin import ActivePlugin
from odradek.meters.metrics_settings import MetricsPushSettings
from odradek.net.held_bytes import limit_or_default
from odradek.plugin.config import ConfigError
from odradek.plugin.protocols import Listens
from odradek.programs.config import HostConfig
from odradek.quota.connection_limits import ConnectionLimits
from odradek.wire.limits import INT32_MAX

FOLDER: Final = "workers"
"""Folder of the further workers in each data directory. No partition's folder has such a name."""
TOTALS_FILE: Final = "totals.file"


def check_workers(config: HostConfig) -> None:
    """Check that several processes can do the work of the gateway.

    Raises:
        ConfigError: They cannot.
    """
    if config.gateway.workers == 1:
        return
    for address in config.listeners:
        if not address.port:
            problem = f"expected a port for {address}, because processes can only share a known one"
            raise ConfigError(WORKERS, problem)
    if config.gateway.own_telemetry.own_resources:
        raise ConfigError(
            "gateway.client.metrics",
            f"expected pass with {WORKERS} above 1, because a request reaches only one of them; write the "
            "subscriptions into the file, or run one worker",
        )


def check_plugins(plugins: Iterable[ActivePlugin]) -> None:
    """Check that each worker can run the forwarders.

    Raises:
        ConfigError: A forwarder listens on an address, and only one worker could have it.
    """
    for plugin in plugins:
        for name, forwarder in plugin.forwarders.items():
            if isinstance(forwarder, Listens) and forwarder.listens is not None:
                raise ConfigError(
                    f"plugins.{plugin.name}",
                    f"the forwarder {name} listens on {forwarder.listens}, and only one worker could; run it "
                    f"with odradek forward on a topic, or set {WORKERS} to 1",
                )


def shared(config: HostConfig, worker: int) -> HostConfig:
    """The configuration of one worker.

    Args:
        config: That of the gateway.
        worker: From 0 to ``gateway.workers`` - 1; beyond it one that delivers what a former worker has left.
    """
    gateway, number = config.gateway, config.gateway.workers
    name = gateway.own_telemetry.name or socket.gethostname()
    return replace(
        config,
        data_directory=folder_of(config.data_dir, worker),
        log_dirs=tuple(folder_of(each, worker) for each in config.log_dirs),
        metrics_listener=None,
        metrics_push=MetricsPushSettings(),
        connections=part_of_connections(config.connections, number),
        memory=replace(
            config.memory,
            request_bytes=max(
                part_of_memory(config.memory.request_bytes, number), config.socket_request_max_bytes
            ),
            response_bytes=part_of_memory(config.memory.response_bytes, number),
        ),
        gateway=replace(
            gateway,
            reuse_port=gateway.reuse_port or number > 1,
            memory_bytes=part_of_memory(gateway.memory_bytes, number),
            own_telemetry=replace(gateway.own_telemetry, name=f"{name}-{worker}" if worker else name),
        ),
        plugins={plugin: own_files(table, worker) for plugin, table in config.plugins.items()},
    )


def folder_of(directory: Path, worker: int) -> Path:
    """The data directory of a worker. The first one has that of the gateway, as without other workers."""
    return directory / FOLDER / str(worker) if worker else directory


def former_workers(config: HostConfig) -> list[int]:
    """The workers beyond ``gateway.workers`` that have left a data directory, in order.

    Raises:
        ConfigError: The data directory cannot be read.
    """
    folder = config.data_dir / FOLDER
    try:
        names = [each.name for each in folder.iterdir()] if exists(folder) else []
    except OSError as error:
        raise ConfigError("data.dir", f"{folder} cannot be read: {error.strerror}") from error
    return sorted(int(name) for name in names if name.isdecimal() and int(name) >= config.gateway.workers)


def part_of_connections(limits: ConnectionLimits, number: int) -> ConnectionLimits:
    """The limits of one of some workers. Those for single addresses stay whole: the few connections of a
    client may all have reached one worker.
    """
    return replace(
        limits,
        max_connections=part(limits.max_connections, number),
        creation_rate=part(limits.creation_rate, number),
        by_listener={key: part(limit, number) for key, limit in limits.by_listener.items()},
    )


def part(limit: int, number: int) -> int:
    """The part of one of some workers, rounded up; a limit that is not set stays so."""
    return limit if limit == INT32_MAX else -(-limit // number)


def part_of_memory(limit_bytes: int, number: int) -> int:
    """The part of one of some workers. A limit that is not positive stands for the default."""
    return limit_or_default(limit_bytes) // number


def own_files(table: Mapping[str, object], worker: int) -> Mapping[str, object]:
    """The table of a plugin, with files of totals of a worker's own: the totals follow its log."""
    if not worker:
        return table
    return {
        key: own_file(value, worker)
        if key.endswith(TOTALS_FILE) and isinstance(value, str) and value
        else value
        for key, value in table.items()
    }


def own_file(path: str, worker: int) -> str:
    """The path of a worker's own file in the same folder: ``totals-1.db``."""
    found = Path(path)
    return str(found.with_name(f"{found.stem}-{worker}{found.suffix}"))
