"""The lines of a started host about itself: an operator sees what the configuration has become."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from odradek import __version__
from odradek.hosting.active_plugin import ActivePlugin, PluginState
from odradek.process.log_format import Size
from odradek.telemetry.subscriptions import CREATE, NO_SUBSCRIPTION

if TYPE_CHECKING:
    from odradek.broker.acls import Acls
    from odradek.programs.gateway import Gateway
    from odradek.programs.host import Host
    from odradek.security.authorizer_settings import AuthorizerSettings

log = logging.getLogger("odradek")

MOST_SHOWN = 10
"""Subscriptions that are named; clients can create thousands."""

Line = tuple[str, Mapping[str, object]]
"""A message and its fields."""


def report(program: Host | Gateway, config_file: object, log_level: str, acls: Acls | None = None) -> None:
    """Log what the program is. It accepts connections already, so the ports are the bound ones."""
    for message, about in start_lines(program, config_file, log_level, acls):
        waiting = message == NO_SUBSCRIPTION and about["waiting"]
        log.log(logging.WARNING if waiting else logging.INFO, message, extra=dict(about))


def start_lines(
    program: Host | Gateway, config_file: object, log_level: str, acls: Acls | None
) -> Iterator[Line]:
    """Yield one line per topic, and one per limit."""
    config, memory = program.config, program.memory
    yield (
        f"odradek {__version__}",
        {
            "node.id": config.broker.node_id,
            "config": str(config_file) if config_file else "defaults",
            "log_level": log_level,
        },
    )
    endpoint = program.outlets.endpoint
    metrics = config.metrics_listener
    yield (
        "listening",
        {
            "listeners": program.addresses,
            "metrics": metrics.at(endpoint.bound_port) if metrics and endpoint else "off",
        },
    )
    yield (
        "data",
        {"data.dir": config.data_dir, "log.dirs": list(config.log_dirs) or [config.data_dir / "logs"]},
    )
    if config.gateway.upstream and not config.gateway.own_telemetry.own_resources:
        yield "authorization", {"authorizer": "of the brokers: requests and logins pass through"}
    else:
        yield "authorization", authorization(config.authorizer, acls)
    yield "plugins", plugin_states(program.plugins.all)
    names = sorted(program.telemetry.subscriptions.by_name)
    if names:
        yield "subscriptions", {"in_force": len(names), "names": names[:MOST_SHOWN]}
    else:
        first = program.ground.listeners[0]
        yield (
            NO_SUBSCRIPTION,
            {
                "waiting": [plugin.name for plugin in program.plugins.all if plugin.wants_pushes],
                "create": CREATE.format(first.address.nearby(first.bound_port)),
            },
        )
    limits: dict[str, int] = {
        "max.connections": program.ground.connection_quotas.most,
        "socket.request.max.bytes": Size(config.socket_request_max_bytes),
        "telemetry.max.bytes": Size(config.telemetry.telemetry_max_bytes),
        "queued.max.request.bytes": Size(memory.requests.limit_bytes),
        "queued.max.response.bytes": Size(memory.answers.limit_bytes),
    }
    for name, limit in limits.items():  # a line each: together they are wider than a terminal
        yield "limit", {name: limit}


def authorization(settings: AuthorizerSettings, acls: Acls | None) -> dict[str, object]:
    """The authorizer, its super users, and the number of ACLs if it has any."""
    if not settings.class_name:
        return {"authorizer": "none: clients may do everything"}
    shown: dict[str, object] = {
        "authorizer": settings.class_name,
        "super.users": list(settings.super_users[:MOST_SHOWN]),
    }
    if acls is not None:
        shown |= {"acls": len(acls.index), "allow.everyone.if.no.acl.found": settings.allow_everyone}
    return shown


def plugin_states(plugins: list[ActivePlugin]) -> dict[str, object]:
    """The names of the plugins by state, and the problem of each broken one."""
    states: dict[str, object] = {
        state.value: [plugin.name for plugin in plugins if plugin.state is state]
        for state in (PluginState.ACTIVE, PluginState.IDLE, PluginState.DISABLED)
    }
    broken = [plugin for plugin in plugins if plugin.state is PluginState.BROKEN]
    return states | {"broken": [f"{plugin.name} ({plugin.installed.problem})" for plugin in broken]}
