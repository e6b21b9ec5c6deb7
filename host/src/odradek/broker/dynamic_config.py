"""The settings of a broker that change at run time, on top of its values at the start.

After DynamicBrokerConfig and ConfigHelper (Kafka 4.3). A value that is set on the broker overrides the value
that is set on all brokers, which overrides the configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from odradek.broker.config_entry import ConfigEntry, ConfigSynonym
from odradek.log.log_config import LogConfig
from odradek.plugin.config import ConfigError
from odradek.quota.connection_limits import (
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    ConnectionLimits,
    connection_setting,
)
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaManagers
from odradek.quota.replication_rates import ReplicationRates
from odradek.security.tls_settings import TlsSettings
from odradek.settings.kinds import rendered
from odradek.settings.listener_values import base_of, declaration_of, wider_keys
from odradek.settings.reading import by_key, changed
from odradek.settings.setting import Scope, Setting
from odradek.settings.start_values import StartValue
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource
from odradek.wire.error_code import ErrorCode

LOG_KEYS = by_key(LogConfig)
CERTIFICATE_KEYS = {
    key: each for key, (_, each) in by_key(TlsSettings).items() if each.scope is Scope.LISTENER
}
"""Keys that change at run time, but only for a single listener."""
RATE_KEYS = by_key(ReplicationRates)
"""Kafka shows these only if they are set."""
MIN_INSYNC_REPLICAS = "min.insync.replicas"
WITHOUT_OVERRIDES = (
    f"requirement failed: {MAX_CONNECTIONS_PER_IP} can be set to zero only if "
    f"{MAX_CONNECTIONS_PER_IP_OVERRIDES} property is set."
)


def dynamic_setting(name: str) -> Setting | None:
    """The declaration of a key that changes at run time; None for any other key."""
    for keys in (LOG_KEYS, RATE_KEYS):
        if name in keys:
            return keys[name][1].of_broker()
    return declaration_of(name, CERTIFICATE_KEYS) or connection_setting(name)


@dataclass(slots=True)
class DynamicConfig:
    """The settings of one broker."""

    start: Mapping[str, StartValue]
    """By key: the settings that a configuration file can have."""
    log_defaults: LogConfig
    """The defaults of topics at the start."""
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    """The connection limits at the start."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """Values set at run time on all brokers (BROKER without a name)."""
    node: Mapping[str, str] = field(default_factory=dict)
    """Values set at run time on this broker."""

    @property
    def on_cluster(self) -> Mapping[str, str]:
        """The values that are set on all brokers.

        Kafka sets ``min.insync.replicas`` there when it finalizes eligible leader replicas (KIP-966), as in
        every new cluster.
        """
        return {MIN_INSYNC_REPLICAS: self.log_start_text(MIN_INSYNC_REPLICAS), **self.cluster}

    def log_start_text(self, name: str) -> str:
        """The default of a topic's key at the start."""
        name_of_field, declaration = LOG_KEYS[name]
        return declaration.kind.text(getattr(self.log_defaults, name_of_field))

    def set_keys(self, known: Mapping[str, object]) -> dict[str, str]:
        """The known keys that are set on this broker or on all."""
        return {key: text for key, text in {**self.cluster, **self.node}.items() if key in known}

    def log_config(self) -> LogConfig:
        """Return the configuration of a topic that sets no keys.

        Raises:
            ApiError: INVALID_REQUEST: a value is invalid.
        """
        try:
            return self.log_defaults.changed(self.set_keys(LOG_KEYS))
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, error.problem) from None

    def connection_texts(self) -> dict[str, str]:
        """The connection limits that are set at run time."""
        return {
            key: text
            for key, text in {**self.cluster, **self.node}.items()
            if connection_setting(key) is not None
        }

    def certificate_texts(self) -> dict[str, str]:
        """The settings of certificates that are set at run time."""
        return {key: text for key, text in self.node.items() if base_of(key) in CERTIFICATE_KEYS}

    def check(self) -> None:
        """Check that the values can be put in force.

        Raises:
            ApiError: INVALID_REQUEST: they cannot.
        """
        self.log_config()
        try:
            changed(ReplicationRates(), self.set_keys(RATE_KEYS))
            self.limits.changed(self.connection_texts())
        except ConfigError as error:
            words = WITHOUT_OVERRIDES if error.path == MAX_CONNECTIONS_PER_IP else error.problem
            raise ApiError(ErrorCode.INVALID_REQUEST, words) from None

    def enforce(self, managers: QuotaManagers, quotas: ConnectionQuotas) -> None:
        """Put the connection limits and replication rates in force."""
        quotas.update(self.connection_texts())
        texts = self.set_keys(RATE_KEYS)
        rates = changed(ReplicationRates(), texts)
        for manager, name, rate in (
            (managers.leader, "leader", rates.leader),
            (managers.follower, "follower", rates.follower),
            (managers.alter_log_dirs, "alter_log_dirs", rates.alter_log_dirs),
        ):
            is_set = any(RATE_KEYS[key][0] == name for key in texts)
            manager.update_quota(float(rate) if is_set else None)

    def synonyms(self, name: str) -> list[ConfigSynonym]:
        """Return all values of a broker's key, strongest first; after ``ConfigHelper.configSynonyms``."""
        found = list(self.all_synonyms(name))
        while found and found[0].name != name:
            del found[0]
        return found

    def all_synonyms(self, name: str) -> Iterator[ConfigSynonym]:
        """Yield the values of a key and of its fallbacks; a listener's key falls back to the broker's."""
        own = self.start.get(name)
        fallbacks = own.setting.fallbacks if own is not None else ()
        names = dict.fromkeys((*wider_keys(name), *fallbacks))
        for texts, source in (
            (self.node, ConfigSource.DYNAMIC_BROKER),
            (self.on_cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ):
            for each in names:
                if each in texts:
                    yield ConfigSynonym(each, texts[each], source)
        known = [self.start[each] for each in names if each in self.start]
        for value in known:
            if value.given:
                yield ConfigSynonym(value.setting.name, value.text, ConfigSource.STATIC_BROKER)
        for value in known:
            default = value.setting.default_text
            if default is not None and base_of(value.setting.name) == value.setting.name:
                yield ConfigSynonym(value.setting.name, default, ConfigSource.DEFAULT)

    def shown_keys(self) -> set[str]:
        """The keys in a description of this broker."""
        set_keys = {key for key in {**self.cluster, **self.node} if dynamic_setting(key) is not None}
        return {*self.start, *set_keys}

    def entry(self, name: str) -> ConfigEntry:
        """Describe one of the `shown_keys` of this broker."""
        declaration = dynamic_setting(name)
        key = self.start[name].setting if declaration is None else declaration
        synonyms = self.synonyms(name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        value = synonyms[0].value if synonyms else None
        if source in (ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT):
            value = self.start[name].text
        entry = ConfigEntry(
            key=key,
            value=None if value is None else rendered(key.kind.type, value),
            source=source,
            synonyms=synonyms,
            # Kafka shows the keys of listeners as read-only, although they can be changed
            read_only=declaration is None or base_of(name) != name,
        )
        return hidden(entry) if key.sensitive else entry

    def cluster_entry(self, name: str) -> ConfigEntry:
        """Describe one key that is set on all brokers."""
        key = dynamic_setting(name)
        assert key is not None
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        synonyms = [each for each in self.synonyms(name) if each.source is source]
        return ConfigEntry(
            key=key,
            value=synonyms[0].value,
            source=source,
            synonyms=synonyms,
            read_only=base_of(name) != name,
        )


def hidden(entry: ConfigEntry) -> ConfigEntry:
    """Return an entry without its values."""
    synonyms = [replace(synonym, value=None) for synonym in entry.synonyms]
    return replace(entry, value=None, synonyms=synonyms)
