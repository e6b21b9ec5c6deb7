"""``gateway --check``: what a start would find, in the file, on this machine and in the cluster."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Final

from odradek.broker.spool_settings import Durability
from odradek.cli.check_report import TIMEOUT_MS, CheckReport, check_disk, identity, shortened
from odradek.cli.gateway_run import GatewayRun
from odradek.client.address import Address
from odradek.client.cluster_watch import NOT_OFFERED, Observed, poll
from odradek.client.command_config import CommandConfig
from odradek.client.errors import ClientError
from odradek.client.rights import may_join
from odradek.gateway.telemetry_settings import SubscriptionSource
from odradek.hosting.active_plugin import ActivePlugin, PluginState
from odradek.hosting.cluster_topic import chosen_writer
from odradek.net.listener import ListenerAddress
from odradek.net.pairs.routing import NameRouting, Routing, first_port
from odradek.plugin.config import ConfigError
from odradek.programs.certificates import Certificates
from odradek.programs.config import HostConfig
from odradek.programs.config_check import certificate_line, check_outlets, checked_plugins
from odradek.programs.gateway_addressing import advertised_endpoint
from odradek.programs.gateway_lag import GROUP
from odradek.programs.gateway_workers.ports import check_free
from odradek.upkeep.data_dir import LOCK_FILE
from odradek.waiting.clock import SystemClock, Timer
from odradek.waiting.deferred import offload_inline

THREADS: Final = 16
SOURCES: Final = {
    SubscriptionSource.CLUSTER: "of the cluster",
    SubscriptionSource.FILE: "of this file",
    SubscriptionSource.BOTH: "of the cluster and of this file",
}


def check_gateway(made: GatewayRun) -> CheckReport:
    """Check a gateway without starting it.

    Raises:
        ConfigError: A start would refuse a plugin, its table or a subscription.
    """
    report = CheckReport()
    config, connection, routings = made.config, made.connection, made.routings
    mean_addresses(report, config, connection, routings)
    with checked_plugins(config) as (plugins, _):
        chosen_writer(config.spool, plugins)
        mean_telemetry(report, config, plugins)
    check_outlets(config)
    check_certificates(report, config, routings)
    check_directory(report, config, routings)
    check_cluster(report, config, connection, routings)
    report.unknown += [
        "the rights and logins of clients: they pass through to the brokers",
        "whether the destinations of plugins answer",
    ]
    check_names(report, config, routings)
    return report


def mean_addresses(
    report: CheckReport, config: HostConfig, connection: CommandConfig, routings: Mapping[str, Routing]
) -> None:
    """Say what clients dial, and where it leads."""
    report.means("brokers", f"{', '.join(config.gateway.upstream)}; own requests as {identity(connection)}")
    for listener in config.listeners:
        report.means("clients", dialed(config, listener, routings[listener.name]))


def dialed(config: HostConfig, listener: ListenerAddress, routing: Routing) -> str:
    """The addresses of a listener as clients see them."""
    seen, settings = advertised_endpoint(config, listener), routing.settings
    port = f":{seen.port}" if seen.port else " with a free port"
    start = f"dial {seen.host}{port} ({listener.security_protocol}), and node"
    if settings.names is not None:
        return f"{start} N at {settings.names}".replace("$(nodeId)", "N") + port
    first = settings.advertised_port_start or first_port(listener, settings)
    last = first + len(settings.mapped) - 1
    span = str(first) if first == last else f"{first}-{last}"
    return f"{start}s {settings} at {seen.host}:{span}" if first else f"{start}s {settings} at free ports"


def mean_telemetry(report: CheckReport, config: HostConfig, plugins: list[ActivePlugin]) -> None:
    """Say who answers telemetry, where pushes are kept, and what gets them."""
    settings, spool = config.gateway, config.spool
    if settings.telemetry != "own":
        other = "passed to the brokers" if settings.telemetry == "pass" else "not offered to clients"
        report.means("telemetry", other)
    else:
        source = settings.own_telemetry.subscriptions
        named = ", ".join(sorted(config.subscriptions)) or "none"
        in_file = f" ({named} in the file)" if source is not SubscriptionSource.CLUSTER else ""
        report.means("telemetry", f"answered here, by the subscriptions {SOURCES[source]}{in_file}")
    kept = {
        Durability.MEMORY: "nothing: pushes are in memory only",
        Durability.KAFKA: f"pushes in the topic {spool.topic_name} of a cluster",
    }
    here = f"pushes in {config.data_dir}, for the time and size of telemetry.retention.*"
    report.means("keeps", kept.get(spool.durability, here))
    active = [each.name for each in plugins if each.state is PluginState.ACTIVE]
    metrics = config.metrics_listener or "off"
    report.means("plugins", f"{', '.join(active) or 'none'}; own metrics: {metrics}")
    for each in plugins:
        if each.state is PluginState.BROKEN:
            report.fail(f"plugin {each.name} is broken: {each.installed.problem}")


def check_certificates(report: CheckReport, config: HostConfig, routings: Mapping[str, Routing]) -> None:
    """Check the certificate of each listener, for every name that clients are told to dial."""
    clock = SystemClock()
    with report.attempt():
        for name, tls in Certificates(config, clock, Timer(), offload_inline).listeners.items():
            line = certificate_line(name, tls, clock.now_ms())
            try:
                if name in routings:
                    routings[name].secure(tls)
                    line += ", for all advertised names"
            except ConfigError as error:
                report.fail(str(error))
            else:
                (report.fail if tls.days_left(clock.now_ms()) <= 0 else report.ok)(line)


def check_directory(report: CheckReport, config: HostConfig, routings: Mapping[str, Routing]) -> None:
    """Check the disk and the ports. A gateway that runs has both."""
    writable = [check_disk(report, "data.dir", config.data_dir)]
    writable += [check_disk(report, "log.dirs", each) for each in config.log_dirs if each != config.data_dir]
    if is_locked(config):
        report.unknown.append("the ports: a gateway with this data.dir runs and has them")
    elif config.gateway.reuse_port:
        report.unknown.append("the ports: gateway.reuse.port lets several gateways have them")
    else:
        with report.attempt():
            asyncio.run(check_free(config, routings))
            report.ok("all ports of the listeners are free")


def is_locked(config: HostConfig) -> bool:
    """Whether a process uses the data directory."""
    with suppress(OSError):
        file = os.open(config.data_dir / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
    return False


def check_cluster(
    report: CheckReport, config: HostConfig, connection: CommandConfig, routings: Mapping[str, Routing]
) -> None:
    """Check that the brokers answer and have addresses here, and what the gateway may ask them."""
    own = config.gateway.own_telemetry
    asks = config.gateway.telemetry == "own" and own.reads_cluster
    with connection.admin(",".join(config.gateway.upstream), TIMEOUT_MS) as admin:
        found = poll(admin, asks)
        if not found.nodes:
            report.fail(f"the cluster does not answer: {found.failure}")
            report.unknown.append("nodes, subscriptions and rights: no broker has answered")
            return
        report.ok(f"cluster {found.cluster_id} answers; brokers: {len(found.nodes)}")
        check_brokers(report, connection, found, config.gateway.upstream)
        check_nodes(report, config, routings, [node_id for node_id, _, _ in found.nodes])
        if asks:
            check_subscriptions(report, config, found)
        if config.gateway_lag.measured.has_groups:
            group = config.gateway_lag.group or f"{GROUP}{found.cluster_id}"
            with report.attempt("lag of groups"):
                if may_join(admin.cluster, group):
                    report.ok(f"lag of groups: the group {group} can be joined")
                    report.unknown.append("DESCRIBE on the groups and topics whose lag is measured")
                else:
                    report.fail(f"lag of groups: needs the right READ on the group {group}")


def check_brokers(
    report: CheckReport, connection: CommandConfig, found: Observed, upstream: Iterable[str]
) -> None:
    """Connect to each broker, and log in."""
    places = {str(Address(host, port)): f"broker {node_id}" for node_id, host, port in found.nodes}
    places = {each: "bootstrap" for each in upstream if each not in places} | places

    def problem_of(place: str) -> str | None:
        try:
            with connection.admin(place, TIMEOUT_MS) as admin:
                admin.cluster.any()
        except ClientError as error:
            return str(error)
        return None

    with ThreadPoolExecutor(min(THREADS, len(places))) as threads:
        problems = dict(zip(places, threads.map(problem_of, places), strict=True))
    for place, problem in problems.items():
        if problem is not None:
            report.fail(f"{places[place]}: {problem}")
    reached = [f"{what} {place}" for place, what in places.items() if problems[place] is None]
    if reached:
        report.ok(f"reached: {shortened(reached)}")


def check_nodes(
    report: CheckReport, config: HostConfig, routings: Mapping[str, Routing], nodes: Iterable[int]
) -> None:
    """Check that clients of each listener have an address for each broker."""
    ids = sorted(nodes)
    for name, routing in routings.items():
        mapped = routing.settings.mapped
        missing = [each for each in ids if mapped.place(each) is None]
        if not missing:
            report.ok(f"listener {name} has an address for each broker: {shortened(ids)}")
        elif config.gateway.bypass_unmapped:
            report.warn(f"listener {name}: clients dial {shortened(missing)} directly, not in gateway.nodes")
        else:
            report.fail(
                f"listener {name}: clients cannot reach the brokers {shortened(missing)}; "
                "add them to gateway.nodes"
            )


def check_subscriptions(report: CheckReport, config: HostConfig, found: Observed) -> None:
    """Check that the subscriptions of the cluster can be listed, and that there is one."""
    in_file = config.gateway.own_telemetry.subscriptions is SubscriptionSource.BOTH and config.subscriptions
    if found.refusal == NOT_OFFERED and config.subscriptions:
        report.ok(f"subscriptions: those of the file apply, because {found.refusal}")
    elif found.refusal is not None:
        report.fail(f"subscriptions: {found.refusal}")
    elif found.subscriptions is None:
        report.fail(f"subscriptions: {found.failure}")
    elif found.subscriptions or in_file:
        report.ok(f"subscriptions: the cluster lists {len(found.subscriptions)} of its own")
    else:
        report.warn("subscriptions: there is none yet, so clients push nothing")


def check_names(report: CheckReport, config: HostConfig, routings: Mapping[str, Routing]) -> None:
    """Say what only a client can find out about its addresses."""
    names = set()
    for listener in config.listeners:
        names.add(advertised_endpoint(config, listener).host)
        routing = routings[listener.name]
        if isinstance(routing, NameRouting) and routing.settings.names is not None:
            ids = routing.settings.mapped.ranges
            names |= {routing.settings.names.name(first) for first, _ in ids}
    unknown = sorted(each for each in names if not resolves(each))
    note = f"; this machine does not resolve {shortened(unknown)}" if unknown else ""
    report.unknown.append(f"whether clients resolve and reach {shortened(sorted(names))}{note}")


def resolves(host: str) -> bool:
    """Whether this machine knows an address of a host."""
    try:
        return bool(socket.getaddrinfo(host, None))
    except OSError:
        return False
