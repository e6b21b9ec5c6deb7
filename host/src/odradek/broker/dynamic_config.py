"""The settings of a broker that change at run time, on top of its values at the start.

After DynamicBrokerConfig and ConfigHelper (Kafka 4.3). A value that is set on the broker overrides the value
that is set on all brokers, which overrides the configuration file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from odradek.broker.config_entry import ConfigEntry, ConfigSynonym
from odradek.broker.kafka_keys import NEVER_SHOWN, kafka_keys, unknown_key
from odradek.log.log_config import LogConfig
from odradek.plugin.config import ConfigError
from odradek.quota.connection_limits import (
    MAX_CONNECTION_CREATION_RATE,
    MAX_CONNECTIONS,
    MAX_CONNECTIONS_PER_IP,
    MAX_CONNECTIONS_PER_IP_OVERRIDES,
    ConnectionLimits,
    connection_setting,
    positive_limit,
)
from odradek.quota.connection_quotas import ConnectionQuotas
from odradek.quota.quota_managers import QuotaManagers
from odradek.quota.replication_rates import ReplicationRates
from odradek.security.tls_settings import TlsSettings
from odradek.settings.kinds import rendered
from odradek.settings.listener_values import base_of, wider_keys
from odradek.settings.reading import Checked, by_key, changed
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


Room = tuple[Any, Callable[[Any], object]]
"""A room's settings at the start, and what puts changed ones in force."""


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
    rooms: list[Room] = field(default_factory=list)
    """Those with settings that change at run time."""

    def setting(self, name: str) -> Setting | None:
        """The declaration of a key that changes at run time; None for any other key.

        A listener's key has that of the broker's key, even if listeners have no values of their own.
        """
        base = base_of(name)
        found = self.declaration(base)
        if found is None or not found.dynamic:
            return None
        return found if base == name else replace(found, name=name)

    def declaration(self, name: str) -> Setting | None:
        """The declaration of a key of brokers: the host's, or Kafka's."""
        if name in self.start:
            return self.start[name].setting
        return RATE_KEYS[name][1] if name in RATE_KEYS else kafka_keys().get(name)

    def is_fixed(self, name: str) -> bool:
        """Whether a key is read at the start only, as a listener's key, too."""
        return self.setting(name) is None and (
            base_of(name) in self.start or name in kafka_keys() or name in NEVER_SHOWN
        )

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
            limits = self.connection_texts()
            self.limits.changed(limits)
            for key in (MAX_CONNECTIONS, MAX_CONNECTION_CREATION_RATE):
                if key in limits:
                    positive_limit(key, limits[key])
            for settings in (self.of_room(start) for start, _ in self.rooms):
                if isinstance(settings, Checked):
                    settings.check()
        except ConfigError as error:
            words = WITHOUT_OVERRIDES if error.path == MAX_CONNECTIONS_PER_IP else error.problem
            raise ApiError(ErrorCode.INVALID_REQUEST, words) from None

    def of_room(self, start: Any) -> Any:
        """The settings of a room with those that are set at run time.

        Raises:
            ConfigError: A text is not a value of its setting.
        """
        kind: Any = type(start)
        keys = by_key(kind)
        return changed(start, self.set_keys({key: each for key, (_, each) in keys.items() if each.dynamic}))

    def enforce(self, managers: QuotaManagers, quotas: ConnectionQuotas) -> None:
        """Put the connection limits, the replication rates and the settings of rooms in force."""
        for start, use in self.rooms:
            use(self.of_room(start))
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
        for key in (self.declaration(each) for each in names if each not in RATE_KEYS):
            if key is not None and key.default_text is not None and base_of(key.name) == key.name:
                yield ConfigSynonym(key.name, key.default_text, ConfigSource.DEFAULT)

    def shown_keys(self) -> set[str]:
        """The keys in a description of this broker."""
        return {*self.start, *self.cluster, *self.node}

    def entry(self, name: str) -> ConfigEntry:
        """Describe one key of this broker, or one of Kafka's that is not set."""
        synonyms = self.synonyms(name)
        source = synonyms[0].source if synonyms else ConfigSource.DEFAULT
        value = synonyms[0].value if synonyms else None
        if source in (ConfigSource.STATIC_BROKER, ConfigSource.DEFAULT) and name in self.start:
            value = self.start[name].text
        return self.described(name, value, source, synonyms, is_rendered=True)

    def cluster_entry(self, name: str) -> ConfigEntry:
        """Describe one key that is set on all brokers."""
        source = ConfigSource.DYNAMIC_DEFAULT_BROKER
        synonyms = [each for each in self.synonyms(name) if each.source is source]
        return self.described(name, synonyms[0].value, source, synonyms, is_rendered=False)

    def described(
        self,
        name: str,
        value: str | None,
        source: ConfigSource,
        synonyms: Sequence[ConfigSynonym],
        *,
        is_rendered: bool,
    ) -> ConfigEntry:
        """A key with its values; those of a secret are hidden."""
        changeable = self.setting(name)
        key = changeable or self.declaration(name) or unknown_key(name)
        if key.sensitive:
            value, synonyms = None, [replace(synonym, value=None) for synonym in synonyms]
        return ConfigEntry(
            key=key,
            value=rendered(key.kind.type, value) if is_rendered and value is not None else value,
            source=source,
            synonyms=synonyms,
            # Kafka shows the keys of listeners as read-only, although they can be changed
            read_only=changeable is None or base_of(name) != name,
        )
