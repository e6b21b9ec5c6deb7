"""The keys that a program does not use, with what to write there instead: it refuses them with these words.

One file may not hold the keys of two programs: a key that a program ignores looks as if it worked.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from odradek.plugin.config import ConfigError
from odradek.programs.config import HostConfig
from odradek.settings.listener_values import base_of


class Program(StrEnum):
    """A program with a configuration file, by the name of its command."""

    SERVE = "odradek serve"
    GATEWAY = "odradek gateway"
    FORWARD = "odradek forward"


Advice = Mapping[str, str]
"""By key, or by the beginning of keys with a final dot: what to write instead; empty if there is nothing."""

NO_SASL: Final = "the logins of clients pass through a gateway to the brokers"
NO_CLIENTS: Final = "clients have no topics, groups and transactions here, but those of the brokers"
NO_TURNS: Final = "a gateway passes requests on as they come"

IN_SERVE: Final[Advice] = {
    "gateway.": "",
    "lag.fetch": "",
    "gateway.observe": "write telemetry.observe",
    "gateway.lag": "write telemetry.lag",
    "gateway.lag.interval.ms": "write telemetry.lag.interval.ms",
    "gateway.connections.max.idle.ms": "write connections.max.idle.ms",
    "gateway.memory.max": "write queued.max.request.bytes and queued.max.response.bytes",
    "gateway.drain.ms": "write shutdown.timeout.ms",
    "gateway.upstream": "to follow the subscriptions of a cluster, write "
    "telemetry.subscriptions.bootstrap.servers",
    "gateway.upstream.command.config": "write telemetry.subscriptions.command.config",
    "gateway.subscriptions.interval.ms": "write telemetry.subscriptions.interval.ms",
}
SHARED_WITH_SERVE: Final = ("gateway.observe.clients.max", "gateway.observe.cardinality")
"""Bounds of the observed clients of both."""
IN_GATEWAY: Final[Advice] = {
    "telemetry.observe": "write gateway.observe",
    "telemetry.lag": "write gateway.lag",
    "telemetry.lag.interval.ms": "write gateway.lag.interval.ms",
    "telemetry.subscriptions.bootstrap.servers": "write gateway.upstream",
    "telemetry.subscriptions.command.config": "write gateway.upstream.command.config",
    "telemetry.subscriptions.interval.ms": "write gateway.subscriptions.interval.ms",
    "queued.max.request.bytes": "write gateway.memory.max",
    "queued.max.response.bytes": "write gateway.memory.max",
    "connections.turn.": NO_TURNS,
    "connections.light.percent": NO_TURNS,
    "sasl.enabled.mechanisms": NO_SASL,
    "connections.max.reauth.ms": NO_SASL,
    "connection.failed.authentication.delay.ms": NO_SASL,
    "sasl.server.max.receive.size": NO_SASL,
    "max.authentication.rate.per.ip": NO_SASL,
    "scram.users.max": NO_SASL,
    "sasl.oauthbearer.": NO_SASL,
    "https.ca.location": NO_SASL,
    "auto.create.topics.enable": NO_CLIENTS,
    "num.partitions": "write telemetry.topic.partitions",
    "fetch.": NO_CLIENTS,
    "max.incremental.fetch.session.cache.slots": NO_CLIENTS,
    "group.": NO_CLIENTS,
    "groups.max": NO_CLIENTS,
    "transaction.": NO_CLIENTS,
    "transactional.": NO_CLIENTS,
}
SHARED_WITH_GATEWAY: Final = ("sasl.oauthbearer.sub.claim.name",)
"""The name of a client in the token that it sends to its broker."""
OF_FORWARD: Final = (
    "cluster.name",
    "log.level",
    "metrics.",
    "plugin.slow.ms",
    "shutdown.timeout.ms",
    "ssl.",
    "telemetry.error.policy",
    "telemetry.max.bytes",
    "telemetry.max.decompressed.bytes",
)
"""All that a forwarder beside a topic uses: the limits of a payload, and its own metrics."""
IN_FORWARD: Final[Advice] = {
    "telemetry.topic.name": "give --topic",
    "telemetry.subscriptions.bootstrap.servers": "give --bootstrap-server",
    "telemetry.subscriptions.command.config": "give --command-config",
    "gateway.upstream": "give --bootstrap-server",
    "gateway.upstream.command.config": "give --command-config",
    "": "",
}


def refused(program: Program, key: str) -> str | None:
    """What to write instead of a declared key that a program does not use; None if it uses it."""
    if program is Program.FORWARD:
        return None if is_one_of(key, OF_FORWARD) else advice(IN_FORWARD, key)
    if program is Program.GATEWAY:
        return None if key in SHARED_WITH_GATEWAY else advice(IN_GATEWAY, key)
    return None if key in SHARED_WITH_SERVE else advice(IN_SERVE, key)


def check_keys(program: Program, keys: Iterable[str]) -> None:
    """Check that a program uses all keys of its configuration, also those of single listeners.

    Raises:
        ConfigError: It does not use one.
    """
    for key in sorted(keys):
        base = base_of(key)
        instead = refused(program, base)
        if instead is not None:
            users = " and ".join(each for each in Program if refused(each, base) is None)
            here = f"; here {instead}" if instead else ""
            raise ConfigError(key, f"is a key of {users}, which {program} does not use{here}")


def check_config(program: Program, config: HostConfig) -> None:
    """Check that a program uses all keys and tables of a configuration.

    Raises:
        ConfigError: It does not use one.
    """
    tables = {f"subscriptions.{name}" for name in config.subscriptions}
    tables |= {f"quotas.{name}" for name in config.client_quotas}
    check_keys(program, tables | (config.given or set()))


def advice(table: Advice, key: str) -> str | None:
    """The words about a key, or about the longest beginning of it; None if there are none."""
    found = [each for each in table if key == each or (key.startswith(each) and each[-1:] in ("", "."))]
    return table[max(found, key=len)] if found else None


def is_one_of(key: str, names: Iterable[str]) -> bool:
    """Whether a key is one of these, or begins with one that ends with a dot."""
    return any(key == each or (each[-1] == "." and key.startswith(each)) for each in names)
