"""The host's configuration: one TOML file under Kafka's key names, and ``--set key=value`` on top.

A dotted key may be quoted or not: tables inside tables are flattened, so ``"socket.request.max.bytes" = 1``
and ``socket.request.max.bytes = 1`` mean the same. Unknown keys and bad values stop the start with the key's
path.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from odradek.broker.broker import BrokerSettings, Endpoint
from odradek.broker.spool_settings import SpoolSettings
from odradek.group.group_config import GroupConfig
from odradek.log.log_config import LogConfig
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.quota.quota_managers import QuotaConfigs
from odradek.security.sasl_authenticator import SaslSettings
from odradek.server.connection_keys import ConnectionSettings, read_connection_settings
from odradek.server.group_keys import read_group_config
from odradek.server.log_keys import read_log_defaults, read_log_dirs, read_upkeep
from odradek.server.metrics_keys import MetricsPushSettings, read_metrics_listener, read_metrics_push
from odradek.server.quota_keys import read_quota_configs
from odradek.server.sasl_keys import read_sasl, read_security_protocols, security_protocol
from odradek.server.sockets.listener import ListenerAddress
from odradek.server.spool_keys import read_spool
from odradek.server.transactions import read_transactions
from odradek.server.upkeep.log_upkeep import UpkeepSettings
from odradek.telemetry.client_metrics_configs import CONFIG_KEYS
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.transaction.transaction_config import TransactionConfig

TABLES = ("plugins", "subscriptions")
"""Tables whose next level is a name, not a key."""

LISTENER_TEXT = re.compile(
    r"(?P<name>[A-Z][A-Z0-9_]*)://(?P<host>\[[0-9A-Fa-f:.%]*\]|[^:/\[\]]*):(?P<port>\d{1,5})"
)
INT32_MAX = 2**31 - 1
EVERY_ADDRESS = ("", "0.0.0.0", "::")
SUBSCRIPTION_KEYS = tuple(key.name for key in CONFIG_KEYS)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostConfig:
    """Everything that is known before the host starts. `load_config` makes it."""

    data_dir: Path = Path("odradek-data")
    listeners: tuple[ListenerAddress, ...] = (ListenerAddress("PLAINTEXT", "127.0.0.1", 9092),)
    advertised: Mapping[str, Endpoint] = field(default_factory=dict)
    """By listener name; a listener that is not here is advertised where it listens."""
    broker: BrokerSettings = field(default_factory=BrokerSettings)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    spool: SpoolSettings = field(default_factory=SpoolSettings)
    socket_request_max_bytes: int = 104_857_600
    connections_max_idle_ms: int = 600_000
    shutdown_timeout_ms: int = 5_000
    payload_workers: int = 1
    """Processes for payloads above ``telemetry.inline.bytes``; 0 opens them on the loop."""
    metrics_listener: Endpoint | None = None
    metrics_push: MetricsPushSettings | None = None
    log_dirs: tuple[Path, ...] = ()
    """Where the logs are; none for a folder of ``data_dir``."""
    upkeep: UpkeepSettings = field(default_factory=UpkeepSettings)
    log_defaults: LogConfig = field(default_factory=LogConfig)
    """What topics are configured as where they do not say otherwise (Kafka's ``log.*`` keys)."""
    groups: GroupConfig = field(default_factory=GroupConfig)
    transactions: TransactionConfig = field(default_factory=TransactionConfig)
    quotas: QuotaConfigs = field(default_factory=QuotaConfigs)
    sasl: SaslSettings = field(default_factory=SaslSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)
    subscriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    plugins: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    requested_plugins: frozenset[str] = frozenset()


def load_config(
    path: Path | None = None, overrides: Iterable[str] = (), plugins: Iterable[str] = ()
) -> HostConfig:
    """Read the file, put the overrides on top and check everything.

    Args:
        path: A TOML file; None for the defaults alone.
        overrides: ``key=value`` texts, with the full path of the key: ``plugins.otlp.endpoint=...``.
        plugins: Names of plugins to activate, as ``--plugin`` gives them.

    Raises:
        ConfigError: The file cannot be read, or a key or a value is wrong.
    """
    values = flatten(read_toml(path)) if path else {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError("--set", f"expected key=value, found {override!r}")
        values[key.strip()] = value
    return parse(values, frozenset(plugins))


def read_toml(path: Path) -> dict[str, object]:
    """The file's content."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"is not TOML: {error}") from error


def flatten(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Dotted keys for everything below ``table``; an empty table below a named one is kept as a mark."""
    flat: dict[str, object] = {}
    for key, value in table.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.") or {f"{prefix}{key}": {}}
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def named_tables(values: Mapping[str, object], kind: str) -> dict[str, dict[str, object]]:
    """The tables ``[<kind>.<name>]`` by name."""
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


def parse(values: Mapping[str, object], requested_plugins: frozenset[str]) -> HostConfig:
    """The checked configuration."""
    top = PluginConfig("", {key: value for key, value in values.items() if key.split(".")[0] not in TABLES})
    listeners = read_listeners(top)
    config = HostConfig(
        data_dir=Path(top.text("data.dir") or "odradek-data"),
        listeners=listeners,
        advertised=read_advertised(top, listeners),
        broker=BrokerSettings(
            node_id=top.integer("node.id", 1, 0, INT32_MAX),
            auto_create_topics_enable=top.boolean("auto.create.topics.enable", True),
            num_partitions=top.integer("num.partitions", 1, 1, 1_000),
            fetch_max_bytes=top.integer("fetch.max.bytes", 57_671_680, 1024, INT32_MAX),
            max_incremental_fetch_session_cache_slots=top.integer(
                "max.incremental.fetch.session.cache.slots", 1_000, 0, INT32_MAX
            ),
        ),
        telemetry=TelemetryConfig(
            telemetry_max_bytes=top.integer("telemetry.max.bytes", 1_048_576, 1, INT32_MAX),
            max_decompressed_bytes=top.integer("telemetry.max.decompressed.bytes", 16_777_216, 1, INT32_MAX),
            inline_bytes=top.integer("telemetry.inline.bytes", 65_536, 0, INT32_MAX),
            error_policy=ErrorPolicy(top.choice("telemetry.error.policy", "client-safe", list(ErrorPolicy))),
            slow_ms=top.integer("plugin.slow.ms", 5, 1, 60_000),
        ),
        spool=read_spool(top),
        socket_request_max_bytes=top.integer("socket.request.max.bytes", 104_857_600, 1024, INT32_MAX),
        connections_max_idle_ms=top.integer("connections.max.idle.ms", 600_000, 1_000),
        shutdown_timeout_ms=top.integer("shutdown.timeout.ms", 5_000, 0, 600_000),
        payload_workers=top.integer("payload.workers", 1, 0, 64),
        metrics_listener=read_metrics_listener(top),
        metrics_push=read_metrics_push(top),
        log_defaults=read_log_defaults(top),
        log_dirs=read_log_dirs(top),
        upkeep=read_upkeep(top),
        groups=read_group_config(top),
        transactions=read_transactions(top),
        quotas=read_quota_configs(top),
        sasl=read_sasl(top),
        connections=read_connection_settings(top, listeners),
        subscriptions=read_subscriptions(values),
        plugins=named_tables(values, "plugins"),
        requested_plugins=requested_plugins,
    )
    top.finish()
    return config


def read_listeners(top: PluginConfig) -> tuple[ListenerAddress, ...]:
    """``listeners``: one or more of ``NAME://HOST:PORT``."""
    texts = top.texts("listeners", ["PLAINTEXT://127.0.0.1:9092"])
    listeners = tuple(listener_address(top, "listeners", text) for text in texts)
    names = [listener.name for listener in listeners]
    if not names or len(set(names)) < len(names):
        raise top.error("listeners", f"expected one or more listeners with different names, found {texts!r}")
    protocols = read_security_protocols(top)
    return tuple(secured(top, listener, protocols) for listener in listeners)


def secured(top: PluginConfig, listener: ListenerAddress, protocols: Mapping[str, str]) -> ListenerAddress:
    """A listener with its security protocol."""
    protocol = security_protocol(listener.name, protocols)
    if protocol is None:
        raise top.error(
            "listeners",
            f"expected a name PLAINTEXT, SASL_PLAINTEXT, one that begins so and goes on with _, or one that "
            f"listener.security.protocol.map has, found {listener.name!r}",
        )
    return replace(listener, security_protocol=protocol)


def listener_address(top: PluginConfig, key: str, text: str) -> ListenerAddress:
    """One listener's address."""
    match = LISTENER_TEXT.fullmatch(text)
    if match is None or int(match["port"]) > 65_535:
        raise top.error(key, f"expected NAME://HOST:PORT, found {text!r}")
    return ListenerAddress(match["name"], match["host"].strip("[]"), int(match["port"]))


def read_advertised(top: PluginConfig, listeners: tuple[ListenerAddress, ...]) -> dict[str, Endpoint]:
    """``advertised.listeners``: what clients are told, for listeners that exist."""
    names = {listener.name for listener in listeners}
    advertised: dict[str, Endpoint] = {}
    for text in top.texts("advertised.listeners"):
        address = listener_address(top, "advertised.listeners", text)
        if address.name not in names:
            raise top.error("advertised.listeners", f"no listener has the name {address.name!r}")
        advertised[address.name] = Endpoint(address.host, address.port)
    for listener in listeners:
        if listener.host in EVERY_ADDRESS and listener.name not in advertised:
            raise top.error(
                "advertised.listeners",
                f"expected an address for {listener}, which listens everywhere: clients are told it",
            )
    return advertised


def read_subscriptions(values: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """``[subscriptions.<name>]``: CLIENT_METRICS resources, as the texts that Kafka stores."""
    subscriptions: dict[str, dict[str, str]] = {}
    for path, value in values.items():
        if not path.startswith("subscriptions."):
            continue
        # the name may have dots, so the key is taken from the end
        known = next((key for key in SUBSCRIPTION_KEYS if path.endswith(f".{key}")), None)
        name, _, key = path.removeprefix("subscriptions.").rpartition(f".{known}" if known else ".")
        if not name or value == {}:
            raise ConfigError(path, f"expected a table with {', '.join(SUBSCRIPTION_KEYS)}, found {value!r}")
        subscriptions.setdefault(name, {})[known or key] = property_text(path, value)
    return subscriptions


def property_text(path: str, value: object) -> str:
    """A value as Kafka stores it: lists are joined with commas."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return ",".join(value)
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value)
    raise ConfigError(path, f"expected a string, a whole number or a list of strings, found {value!r}")
