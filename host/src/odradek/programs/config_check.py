"""``serve --check``: everything a start checks in a configuration, without opening a port or a file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.hosting.active_plugin import ActivePlugin, activate, quota_callback
from odradek.hosting.authorizers import chosen_authorizer
from odradek.hosting.cluster_topic import chosen_writer
from odradek.hosting.forwarders import check_totals
from odradek.hosting.offered_objects import close_offers, register
from odradek.hosting.plugin_manager import load_plugins
from odradek.programs.certificates import Certificates
from odradek.programs.config import HostConfig
from odradek.programs.file_subscriptions import check_subscriptions
from odradek.security.authorizer_settings import AuthorizerSettings
from odradek.telemetry.enrichers import Enrichers
from odradek.telemetry.receiver_plugin import ClientMetricsReceiverPlugin
from odradek.telemetry.subscriptions import Subscriptions
from odradek.waiting.clock import SystemClock, Timer
from odradek.waiting.deferred import offload_inline

if TYPE_CHECKING:
    from odradek.net.listener_tls import ListenerTls


def check(config: HostConfig) -> list[str]:
    """Call the hooks of the plugins and check the subscriptions; return a line about each.

    Raises:
        ConfigError: A start would refuse this configuration.
    """
    clock = SystemClock()
    certificates = Certificates(config, clock, Timer(), offload_inline)
    with checked_plugins(config) as (plugins, _):
        quota_callback(plugins)
        chosen_writer(config.spool, plugins)
        chosen_authorizer(config.authorizer, plugins, clock)
        for plugin in plugins:
            check_totals(plugin)
        check_outlets(config)
    subscriptions = [f"subscription {name}" for name in sorted(config.subscriptions)]
    rights = authorization_line(config.authorizer)
    now_ms = clock.now_ms()
    listeners = [certificate_line(name, tls, now_ms) for name, tls in certificates.listeners.items()]
    return ["configuration is valid", rights, *map(plugin_line, plugins), *subscriptions, *listeners]


@contextmanager
def checked_plugins(
    config: HostConfig,
) -> Iterator[tuple[list[ActivePlugin], ClientMetricsReceiverPlugin]]:
    """The plugins of a configuration and their receivers, not started, and closed after the body.

    Raises:
        ConfigError: One of them cannot be used.
    """
    clock = SystemClock()
    plugins = activate(load_plugins(config.requested_plugins), config.plugins, config.requested_plugins)
    receivers = ClientMetricsReceiverPlugin(clock)
    try:
        register(plugins, receivers, Enrichers(clock, Timer()))
        yield plugins, receivers
    finally:
        for plugin in plugins:
            close_offers(plugin, config.shutdown_timeout_ms / 1000)


def check_outlets(config: HostConfig) -> None:
    """Check the subscriptions of the file, and where metrics are pushed.

    Raises:
        ConfigError: They are not usable.
    """
    check_subscriptions(config.subscriptions, Subscriptions(config.telemetry, SystemClock()), {})
    if config.metrics_push.endpoint is not None:
        from odradek.meters.metrics_push import exporter

        exporter(config.metrics_push).shutdown()


def certificate_line(listener: str, tls: ListenerTls, now_ms: int) -> str:
    """The certificate of a listener, and how long it is valid."""
    days = tls.days_left(now_ms)
    validity = f"valid for {days:.0f} days" if days > 0 else "expired"
    return f"certificate of listener {listener}: {tls.loaded.certificate.subject}, {validity}"


def authorization_line(settings: AuthorizerSettings) -> str:
    """The authorizer and its super users."""
    if not settings.class_name:
        return "no authorizer: clients may do everything"
    others = ", everyone where no ACL is found" if settings.is_standard and settings.allow_everyone else ""
    super_users = ", ".join(settings.super_users) or "none"
    return f"authorizer {settings.class_name}: super users {super_users}{others}"


def plugin_line(plugin: ActivePlugin) -> str:
    """A plugin with its state, and why it is broken."""
    problem = f": {plugin.installed.problem}" if plugin.installed.problem else ""
    return f"plugin {plugin.name} is {plugin.state}{problem}"
