"""The host's configuration: one TOML file with Kafka's key names, overridden by ``--set key=value``.

A dotted key may be quoted or not: tables inside tables are flattened, so ``"socket.request.max.bytes" = 1``
and ``socket.request.max.bytes = 1`` mean the same. An unknown key or a bad value stops the start with
an error that names the key.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from odradek.broker.audit import AuditSettings
from odradek.broker.broker_settings import BrokerSettings, Endpoint
from odradek.broker.quota_table import QuotaTable, read_quota_tables
from odradek.broker.spool_settings import SpoolSettings
from odradek.estimate.budgets import SubscriptionBudgets
from odradek.findings.presets import KEY, PRESETS, UnknownPreset, expanded
from odradek.gateway.follow_settings import FollowSettings
from odradek.gateway.gateway_settings import GatewaySettings
from odradek.gateway.observation.settings import HostObservationSettings
from odradek.group.group_config import GroupConfig
from odradek.hosting.requested_plugins import by_name
from odradek.lag.lag_settings import GatewayLagSettings, HostLagSettings, LagSettings
from odradek.log.log_config import LogConfig, LongerUnits
from odradek.log.producer_ids import ProducerIdConfig
from odradek.meters.metrics_settings import (
    LISTENER_KIND,
    METRICS_LISTENER,
    TOKEN_KIND,
    MetricsAddress,
    MetricsPushSettings,
)
from odradek.net.held_bytes import MemorySettings
from odradek.net.listener import ListenerAddress
from odradek.net.listener_settings import (
    ADDRESSES,
    ADVERTISED,
    LISTENERS,
    PROTOCOL_MAP,
    PROTOCOLS,
    advertised,
    secured,
)
from odradek.net.proxy_settings import ProxySettings
from odradek.net.turns import TurnSettings
from odradek.plugin.config import ConfigError, PluginConfig, unknown_key
from odradek.process.log_format import LEVELS, NOT_SET
from odradek.process.worker_settings import WorkerSettings
from odradek.programs.config_secrets import secrets_of, warn_about_secrets_in, with_references, with_secrets
from odradek.programs.shipped import DOCS
from odradek.quota.connection_limits import ConnectionLimits, connection_setting
from odradek.quota.descriptors import DescriptorSettings
from odradek.quota.quota_managers import QuotaConfigs
from odradek.security.authorizer_settings import AuthorizerSettings
from odradek.security.oauth.oauth_settings import OAuthSettings
from odradek.security.sasl_settings import SaslSettings
from odradek.security.tls_settings import TlsSettings
from odradek.settings.kinds import INT, LONG, TEXT, Choice, Special, Whole
from odradek.settings.listener_values import declaration_of, of_listener, read_listener_values
from odradek.settings.reading import read_settings
from odradek.settings.secrets import Secrets
from odradek.settings.setting import Scope, Setting, section, setting, walk
from odradek.settings.start_values import StartValue, start_values
from odradek.settings.toml_file import flatten, read_toml
from odradek.telemetry.client_metrics_configs import CONFIG_KEYS
from odradek.telemetry.telemetry_config import TelemetryConfig
from odradek.telemetry.topology import TopologySettings
from odradek.transaction.transaction_config import TransactionConfig
from odradek.upkeep.log_upkeep import UpkeepSettings
from odradek.wire.config_resource import ConfigType

TABLES = ("plugins", "quotas", "subscriptions")
"""Tables with a name, not a key, at the next level."""
REFERENCE = str(DOCS / "reference/configuration.md")
PRESET = Setting(
    name=KEY,
    kind=Choice({name: name for name in PRESETS}),
    default=None,
    documentation="Metrics and interval by a name, instead of `metrics`",
    scope=Scope.SUBSCRIPTION,
    unset="none",
    page="presets.md",
)
SUBSCRIPTION_SETTINGS = (*CONFIG_KEYS, PRESET)
SUBSCRIPTION_KEYS = {key.name: key.kind for key in SUBSCRIPTION_SETTINGS}
DEFAULT_DATA_DIR = Path("odradek-data")
T = TypeVar("T")


def read_path(table: PluginConfig, key: str) -> Path | None:
    """Return the path of a file or a directory; None for an empty text."""
    text = table.text(key)
    return Path(text) if text else None


def read_directories(table: PluginConfig, key: str) -> tuple[Path, ...]:
    """Return the paths of directories."""
    return tuple(Path(text) for text in table.texts(key))


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """The complete configuration of a host. `load_config` makes it."""

    # fmt: off
    data_directory: Path | None = setting(
        "data.dir", Special(type=ConfigType.STRING, shape="text", read=read_path), None,
        "Directory of the metadata, and of the logs if `log.dirs` is not set; only one process can use it "
        "at a time.", unset="first of `log.dirs`, else `odradek-data`",
    )
    log_dirs: tuple[Path, ...] = setting(
        "log.dirs", Special(type=ConfigType.LIST, shape="list", read=read_directories), (),
        "Directories of the partitions, each used by one process at a time; a new partition is placed where "
        "the fewest partitions are.", unset="`logs` in `data.dir`",
    )
    listeners: tuple[ListenerAddress, ...] = setting(
        LISTENERS, ADDRESSES, (ListenerAddress("PLAINTEXT", "127.0.0.1", 9092),),
        "One or more `NAME://HOST:PORT`; a name is or begins with `PLAINTEXT`, `SASL_PLAINTEXT`, `SSL` or "
        "`SASL_SSL`, or is mapped by `listener.security.protocol.map`; port 0 picks a free port.",
    )
    advertised_listeners: tuple[ListenerAddress, ...] | None = setting(
        ADVERTISED, ADDRESSES, None,
        "Addresses that clients connect to, as `NAME://HOST:PORT` by listener name; required for a listener "
        "on all addresses (`0.0.0.0`, `::`).", unset="the address of each listener",
    )
    protocol_map: Mapping[str, str] = setting(
        PROTOCOL_MAP, PROTOCOLS, {},
        "Security protocols of listeners with other names, as `NAME:PROTOCOL`: `PLAINTEXT`, "
        "`SASL_PLAINTEXT`, `SSL` or `SASL_SSL`.",
        unset="by the name of each listener", page="../howto/authenticate-clients.md",
    )
    inter_broker_listener: str | None = setting(
        "inter.broker.listener.name", TEXT, None,
        "Listener that the limits of the whole host do not apply to, if there are several listeners; to "
        "make room for its clients, `max.connections` closes connections of the others.", unset="`PLAINTEXT`",
    )
    socket_request_max_bytes: int = setting(
        "socket.request.max.bytes", Whole(INT, 1024), 104_857_600,
        "Largest request; a client that sends a larger one is disconnected.", unit="bytes",
    )
    connections_max_idle_ms: int = setting(
        "connections.max.idle.ms", Whole(LONG, 1_000), 600_000,
        "A connection that is idle for this long is closed.", unit="ms",
    )
    shutdown_timeout_ms: int = setting(
        "shutdown.timeout.ms", Whole(INT, 0, 600_000), 5_000,
        "Time to send outstanding answers when the host stops, the same time again for forwarders to flush, "
        "and again to close the logs; the next start recovers logs that are not closed.", unit="ms",
    )
    audit_log_file: Path | None = setting(
        "audit.log.file", Special(type=ConfigType.STRING, shape="text", read=read_path), None,
        "File that `odradek serve` writes the audit log to, one JSON object per line; it can be rotated "
        "at any time.", unset="the host's log",
    )
    log_level: str = setting(
        "log.level", Choice(LEVELS | {NOT_SET.lower(): NOT_SET}), NOT_SET,
        "Lowest level of the lines that the host itself logs; `notset` is that of `--log-level`.",
    )
    metrics_listener: MetricsAddress | None = setting(
        "metrics.listener", LISTENER_KIND, None,
        "`http://HOST:PORT` or `https://HOST:PORT` where Prometheus scrapes the host's own metrics; the keys "
        "of its certificates begin with `listener.name.metrics.`.", unset="off", page="metrics.md",
    )
    metrics_token: str | None = setting(
        "metrics.listener.token", TOKEN_KIND, None, "Bearer token that Prometheus must send.", unset="none",
        sensitive=True, page="metrics.md",
    )
    # fmt: on
    broker: BrokerSettings = section(BrokerSettings)
    audit: AuditSettings = section(AuditSettings)
    telemetry: TelemetryConfig = section(TelemetryConfig)
    subscription_budgets: SubscriptionBudgets = section(SubscriptionBudgets)
    observation: HostObservationSettings = section(HostObservationSettings)
    host_lag: HostLagSettings = section(HostLagSettings)
    gateway_lag: GatewayLagSettings = section(GatewayLagSettings)
    lag: LagSettings = section(LagSettings)
    topology: TopologySettings = section(TopologySettings)
    spool: SpoolSettings = section(SpoolSettings)
    follow: FollowSettings = section(FollowSettings)
    workers: WorkerSettings = section(WorkerSettings)
    metrics_push: MetricsPushSettings = section(MetricsPushSettings)
    upkeep: UpkeepSettings = section(UpkeepSettings)
    log_defaults: LogConfig = section(LogConfig)
    """The defaults of topics."""
    producer_ids: ProducerIdConfig = section(ProducerIdConfig)
    longer_units: LongerUnits = section(LongerUnits)
    groups: GroupConfig = section(GroupConfig)
    transactions: TransactionConfig = section(TransactionConfig)
    quotas: QuotaConfigs = section(QuotaConfigs)
    sasl: SaslSettings = section(SaslSettings)
    oauth: OAuthSettings = section(OAuthSettings)
    authorizer: AuthorizerSettings = section(AuthorizerSettings)
    tls: TlsSettings = section(TlsSettings)
    proxies: ProxySettings = section(ProxySettings)
    connections: ConnectionLimits = section(ConnectionLimits)
    turns: TurnSettings = section(TurnSettings)
    memory: MemorySettings = section(MemorySettings)
    descriptors: DescriptorSettings = section(DescriptorSettings)
    gateway: GatewaySettings = section(GatewaySettings)
    listener_values: Mapping[str, Any] = field(default_factory=dict)
    """Values of single listeners, by full key: ``listener.name.internal.max.connections``."""
    subscriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    client_quotas: Mapping[str, QuotaTable] = field(default_factory=dict)
    """The tables ``[quotas.NAME]``."""
    plugins: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    requested_plugins: Mapping[str, object] = field(default_factory=dict)
    """Those of `by_name`."""
    given: frozenset[str] | None = None
    """The keys of the file and of ``--set``; None for a configuration that was not read."""
    secrets: Secrets = field(default=Secrets({}))
    """The values that must not be shown."""

    @property
    def data_dir(self) -> Path:
        """The directory of the metadata."""
        if self.data_directory is None:
            return self.log_dirs[0] if self.log_dirs else DEFAULT_DATA_DIR
        return self.data_directory

    @property
    def advertised(self) -> dict[str, Endpoint]:
        """Advertised addresses by listener name; a listener that is not named advertises its own address."""
        return advertised(self.listeners, self.advertised_listeners or ())

    @property
    def start_values(self) -> dict[str, StartValue]:
        """The values of all settings at the start, by key."""
        values = start_values(self, self.given)
        values["data.dir"] = replace(values["data.dir"], text=str(self.data_dir))
        settings = {key: value.setting for key, value in values.items()}
        for key, value in self.listener_values.items():
            declaration = declaration_of(key, settings)
            assert declaration is not None
            values[key] = StartValue(declaration, declaration.text(value), True)
        for key in self.secrets.by_key.keys() & values.keys():
            hidden = replace(values[key].setting, sensitive=True)
            values[key] = replace(values[key], setting=hidden)
        return values

    def of_listener(self, settings: T, listener: str, mechanism: str = "") -> T:
        """Return the settings of one listener, or of one SASL mechanism of it, from those of the host.

        Raises:
            ConfigError: The values contradict each other.
        """
        return of_listener(settings, self.listener_values, listener, mechanism)

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            ConfigError: They are not.
        """
        secured(self.listeners, self.protocol_map)
        advertised(self.listeners, self.advertised_listeners or ())
        name = self.inter_broker_listener
        if name is not None and name not in {listener.name for listener in self.listeners}:
            raise ConfigError("inter.broker.listener.name", f"no listener has the name {name!r}")
        self.memory.check_fits(self.socket_request_max_bytes)


def load_config(
    path: Path | None = None, overrides: Iterable[str] = (), plugins: Iterable[object] = ()
) -> HostConfig:
    """Read the file, apply the overrides and check everything.

    Args:
        path: A TOML file; None for the defaults alone.
        overrides: ``key=value`` texts, with the full path of the key: ``plugins.otlp.endpoint=...``.
        plugins: Plugins to activate, as ``--plugin`` gives them.

    Raises:
        ConfigError: The file cannot be read, or a key or a value is wrong.
    """
    return parse(read_values(path, overrides), plugins)


def read_values(path: Path | None, overrides: Iterable[str]) -> dict[str, object]:
    """Return the values of the file and of the overrides by dotted key, not checked yet.

    Raises:
        ConfigError: The file cannot be read, an override is not ``key=value``, or a reference to a file or to
            an environment variable has no text.
    """
    values = flatten(read_toml(path)) if path else {}
    if path:
        warn_about_secrets_in(path, values, sensitive_keys())
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError("--set", f"expected key=value, found {override!r}")
        values[key.strip()] = value
    return with_references(values, os.environ)


@cache
def sensitive_keys() -> frozenset[str]:
    """The declared keys that hold secrets."""
    return frozenset(each.name for _, each in walk(HostConfig) if each.sensitive)


def named_tables(values: Mapping[str, object], kind: str) -> dict[str, dict[str, object]]:
    """Return the tables ``[<kind>.<name>]`` by name."""
    tables: dict[str, dict[str, object]] = {}
    for key, value in values.items():
        if not key.startswith(f"{kind}."):
            continue
        name, _, rest = key.removeprefix(f"{kind}.").partition(".")
        table = tables.setdefault(name, {})
        if rest:
            table[rest] = value
        elif value != {}:
            raise ConfigError(key, f"expected a table, found {value!r}")
    return tables


def parse(values: Mapping[str, object], requested_plugins: Iterable[object]) -> HostConfig:
    """Return the checked configuration.

    Raises:
        ConfigError: A key or a value is wrong. The error does not show secrets.
    """
    values = with_secrets(values, sensitive_keys())
    secrets = secrets_of(values)
    with secrets.hidden_in_errors():
        return replace(checked(values, requested_plugins), secrets=secrets)


def checked(values: Mapping[str, object], requested_plugins: Iterable[object]) -> HostConfig:
    """Return the configuration without its secrets."""
    top = PluginConfig("", {key: value for key, value in values.items() if key.split(".")[0] not in TABLES})
    config = read_settings(HostConfig, top)
    given = frozenset(top.values)
    names = [listener.name for listener in config.listeners]
    if config.metrics_listener is not None:
        names.append(METRICS_LISTENER)
    own = read_listener_values(HostConfig, top, names)
    limits = {key: value for key, value in own.items() if connection_setting(key) is not None}
    connections = replace(config.connections, by_listener=limits)
    connections.check()
    for listener in config.listeners:
        of_listener(config.proxies, own, listener.name)
    top.finish(REFERENCE)
    return replace(
        config,
        listeners=secured(config.listeners, config.protocol_map),
        log_defaults=config.longer_units.applied(config.log_defaults, given),
        connections=connections,
        listener_values=own,
        subscriptions=read_subscriptions(values),
        client_quotas=read_quota_tables(named_tables(values, "quotas")),
        plugins=named_tables(values, "plugins"),
        requested_plugins=by_name(requested_plugins),
        given=given,
    )


def read_subscriptions(values: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """Return each ``[subscriptions.<name>]`` as the texts that Kafka stores for a CLIENT_METRICS resource."""
    subscriptions: dict[str, dict[str, str]] = {}
    for path, value in values.items():
        if not path.startswith("subscriptions."):
            continue
        # the name may contain dots, so take the key from the end
        known = next((key for key in SUBSCRIPTION_KEYS if path.endswith(f".{key}")), None)
        name, _, key = path.removeprefix("subscriptions.").rpartition(f".{known}" if known else ".")
        if not name or value == {}:
            raise ConfigError(path, f"expected a table with {', '.join(SUBSCRIPTION_KEYS)}, found {value!r}")
        if known is None:
            raise ConfigError(path, unknown_key(dotted_ends(name, key), SUBSCRIPTION_KEYS, REFERENCE))
        text = property_text(path, value)
        SUBSCRIPTION_KEYS[known].read(PluginConfig(f"subscriptions.{name}", {known: text}), known)
        subscriptions.setdefault(name, {})[known] = text
    for name, its in subscriptions.items():
        try:
            subscriptions[name] = expanded(its)
        except UnknownPreset as error:
            raise ConfigError(f"subscriptions.{name}", str(error)) from None
    return subscriptions


def dotted_ends(name: str, key: str) -> list[str]:
    """Return the texts that a misspelled key may be: the last part of a path, and the last two."""
    return [f"{name.rpartition('.')[2]}.{key}", key]


def property_text(path: str, value: object) -> str:
    """Return a value as Kafka stores it: lists are joined with commas."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(path, f"expected a string, a whole number or a list of strings, found {value!r}")
