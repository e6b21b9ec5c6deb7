"""The quotas that are keys of a broker: limits of connections, and rates of replicas and of moves.

After QuotaConfig.java, SocketServerConfigs.java and DynamicBrokerConfig (Kafka 4.3). Set on the node, on all
brokers or, where it is about connections, in the configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from odradek.broker.config_key import ConfigEntry, ConfigKey, ConfigSynonym, rendered
from odradek.plugin.config import ConfigError
from odradek.quota.connection_limits import (
    BROKER_KEYS,
    LISTENER_KEY,
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    WHOLE_NUMBER,
    is_connection_key,
)
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_config import MAX_INT
from odradek.quota.quota_managers import QuotaManagers
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType
from odradek.wire.error_code import ErrorCode

MAX_LONG = 2**63 - 1
LARGEST = {ConfigType.INT: MAX_INT, ConfigType.LONG: MAX_LONG}
LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
ALTER_LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


def quota_key(name: str, kind: ConfigType, default: str, documentation: str) -> ConfigKey:
    return ConfigKey(name=name, type=kind, default=default, documentation=documentation)


CONNECTION_KEYS: Mapping[str, ConfigKey] = {
    key.name: key
    for key in (
        quota_key(
            MAX_CONNECTION_CREATION_RATE,
            ConfigType.INT,
            str(MAX_INT),
            "How many connections may come in a second",
        ),
        quota_key(MAX_CONNECTIONS, ConfigType.INT, str(MAX_INT), "How many connections there may be at once"),
        quota_key(
            MAX_CONNECTIONS_PER_IP,
            ConfigType.INT,
            str(MAX_INT),
            "How many connections one address may have at once",
        ),
        quota_key(
            MAX_CONNECTIONS_PER_IP_OVERRIDES,
            ConfigType.STRING,
            "",
            "The same for single addresses or hosts: host:count with commas",
        ),
    )
}
RATE_KEYS: Mapping[str, ConfigKey] = {
    name: quota_key(name, ConfigType.LONG, str(MAX_LONG), documentation)
    for name, documentation in (
        (LEADER_RATE, "Bytes per second that replicas which are throttled may fetch from this broker"),
        (FOLLOWER_RATE, "Bytes per second that this broker may fetch for replicas which are throttled"),
        (ALTER_LOG_DIRS_RATE, "Bytes per second for moves between directories of this broker"),
    )
}
"""Kafka shows these only where they are set."""
WITHOUT_OVERRIDES = (
    f"requirement failed: {MAX_CONNECTIONS_PER_IP} can be set to zero only if "
    f"{MAX_CONNECTIONS_PER_IP_OVERRIDES} property is set."
)


def is_quota_key(name: str) -> bool:
    """Whether a broker's key is one of those here; also one of a listener."""
    return is_connection_key(name) or name in RATE_KEYS


def key_of(name: str) -> ConfigKey:
    """The declaration of a key that `is_quota_key`; of a listener's key, its own."""
    if name in RATE_KEYS:
        return RATE_KEYS[name]
    return replace(CONNECTION_KEYS[base_of(name)], name=name)


def base_of(name: str) -> str:
    """The broker's key behind a key of connections."""
    match = LISTENER_KEY.fullmatch(name)
    return name if match is None else match[1]


@dataclass(slots=True)
class DynamicQuotas:
    """What was set at run time; other keys are left out."""

    cluster: Mapping[str, str] = field(default_factory=dict)
    """On all brokers (BROKER without a name)."""
    node: Mapping[str, str] = field(default_factory=dict)
    """On this one; stronger."""

    def effective(self) -> dict[str, str]:
        """What holds on this node."""
        return {key: value for key, value in {**self.cluster, **self.node}.items() if is_quota_key(key)}

    def connections(self) -> dict[str, str]:
        """Of it, what is about connections."""
        return {key: value for key, value in self.effective().items() if is_connection_key(key)}

    def check(self, quotas: ConnectionQuotas) -> None:
        """Whether these keys can be put in force.

        Raises:
            ApiError: INVALID_REQUEST.
        """
        for key, value in self.effective().items():
            check_number(key, value)
        try:
            quotas.checked(self.connections())
        except ConfigError as error:
            words = WITHOUT_OVERRIDES if error.path == MAX_CONNECTIONS_PER_IP else str(error)
            raise ApiError(ErrorCode.INVALID_REQUEST, words) from None

    def enforce(self, managers: QuotaManagers, quotas: ConnectionQuotas) -> None:
        """Put these keys in force."""
        quotas.update(self.connections())
        effective = self.effective()
        for key, manager in (
            (LEADER_RATE, managers.leader),
            (FOLLOWER_RATE, managers.follower),
            (ALTER_LOG_DIRS_RATE, managers.alter_log_dirs),
        ):
            manager.update_quota(float(int(effective[key])) if key in effective else None)

    def shown_keys(self, configured: Mapping[str, str]) -> list[str]:
        """The keys that a description of this node has; ``configured`` are those of the file."""
        return sorted({*BROKER_KEYS, *self.effective(), *configured})

    def entry(self, name: str, configured: Mapping[str, str]) -> ConfigEntry:
        """One key of this node."""
        synonyms = list(self.synonyms(name, configured))
        key, first = key_of(name), synonyms[0]
        return ConfigEntry(
            key=key,
            value=rendered(key.type, first.value),
            source=first.source,
            synonyms=synonyms,
            read_only=is_of_listener(name),
        )

    def synonyms(self, name: str, configured: Mapping[str, str]) -> Iterator[ConfigSynonym]:
        """What stands behind a key, strongest first."""
        yield from synonyms_in(name, self.node, ConfigSource.DYNAMIC_BROKER)
        yield from synonyms_in(name, self.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER)
        yield from synonyms_in(name, configured, ConfigSource.STATIC_BROKER)
        base = key_of(base_of(name))
        if name not in RATE_KEYS:
            yield ConfigSynonym(base.name, base.default, ConfigSource.DEFAULT)

    def cluster_entry(self, name: str) -> ConfigEntry:
        """One key that is set on all brokers."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        synonyms = list(synonyms_in(name, self.cluster, source))
        return ConfigEntry(
            key=key_of(name),
            value=synonyms[0].value,
            source=source,
            synonyms=synonyms,
            read_only=is_of_listener(name),
        )


def is_of_listener(name: str) -> bool:
    """Whether a key is that of one listener; Kafka calls these read-only, and changes them."""
    return base_of(name) != name


def synonyms_in(name: str, keys: Mapping[str, str], source: ConfigSource) -> Iterator[ConfigSynonym]:
    """What one source says about a key; behind that of a listener stands the broker's."""
    for synonym in dict.fromkeys((name, base_of(name))):
        if synonym in keys:
            yield ConfigSynonym(synonym, keys[synonym], source)


def check_number(name: str, text: str) -> None:
    """Whether a value is a number that its key can have, in the words of ConfigDef.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    kind = key_of(name).type
    if kind not in LARGEST:
        return
    if not WHOLE_NUMBER.fullmatch(text.strip()) or abs(int(text)) > LARGEST[kind]:
        problem = f"Not a number of type {kind.name}"
    elif int(text) < 0:
        problem = "Value must be at least 0"
    elif int(text) == 0 and is_of_listener(name):
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Invalid value org.apache.kafka.common.config.ConfigException: Invalid {base_of(name)} 0 for "
            "configuration Invalid dynamic configuration",
        )
    else:
        return
    raise ApiError(ErrorCode.INVALID_REQUEST, f"Invalid value {text} for configuration {name}: {problem}")
