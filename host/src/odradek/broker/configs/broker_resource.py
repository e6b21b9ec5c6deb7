"""BROKER resources: this node, and without a name what holds for all.

What topics go by where they do not say otherwise, limits of connections and rates of replication can be set
at run time; the rest stands in the configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from odradek.broker.broker import Broker
from odradek.broker.config_key import ConfigEntry, ConfigKey, ConfigSynonym, rendered
from odradek.broker.configs.broker_config_keys import STATIC_KEYS, StaticKey, value_text
from odradek.broker.dynamic_quotas import is_quota_key, key_of
from odradek.broker.log_defaults import LOG_DEFAULT_KEYS, LogDefaults
from odradek.broker.topic_config_keys import FALLBACKS, TopicConfigKey
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType, ResourceType
from odradek.wire.error_code import ErrorCode


class BrokerResource:
    """This node."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """The node's keys; for the empty name what was set at run time on all nodes."""
        check_name(name, broker, "Broker", " or empty string")
        if not name:
            return list(cluster_entries(broker))
        own = [static_entry(row, broker) for row in STATIC_KEYS]
        logs = [dynamic_entry(row, broker.log_defaults) for row in LOG_DEFAULT_KEYS.values()]
        return own + logs + list(quota_entries(broker))

    def type_of(self, key: str) -> ConfigType:
        """``log.cleanup.policy`` is a list that can be changed."""
        known = key_named(key)
        return ConfigType.UNKNOWN if known is None else known.type

    def default_of(self, key: str) -> str | None:
        """Kafka's own."""
        known = key_named(key)
        return None if known is None else known.default

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """The name, the keys, the values."""
        check_name(name, broker, "Node", "")
        fixed = [key for key in after if key_named(key) is None]
        if fixed:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
            )
        logs = {key: value for key, value in after.items() if key in LOG_DEFAULT_KEYS}
        defaults, quotas = broker.log_defaults, broker.dynamic_quotas
        changed = replace(defaults, node=logs) if name else replace(defaults, cluster=logs)
        changed.effective()
        limits = replace(quotas, node=after) if name else replace(quotas, cluster=after)
        limits.check(broker.connection_quotas)

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """All topics go by it from the next append on, connections and replicas at once."""
        broker.load_dynamic_config()


def key_named(name: str) -> ConfigKey | None:
    """A key that can be set at run time."""
    if is_quota_key(name):
        return key_of(name)
    row = LOG_DEFAULT_KEYS.get(name)
    return None if row is None else replace(row.key, name=name)


def check_name(name: str, broker: Broker, what: str, otherwise: str) -> None:
    """A broker is named by its id, or not at all.

    Raises:
        ApiError: INVALID_REQUEST.
    """
    if not name:
        return
    try:
        int(name)
    except ValueError:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"{what} id must be an integer, but it is: {name}"
        ) from None
    expected = str(broker.settings.node_id)
    if name != expected:
        raise ApiError(
            ErrorCode.INVALID_REQUEST,
            f"Unexpected broker id, expected {expected}{otherwise}, but received {name}",
        )


def static_entry(row: StaticKey, broker: Broker) -> ConfigEntry:
    """A setting, taken to stand in the configuration file when it differs from the default."""
    key, value = row.key, value_text(row.read(broker))
    synonyms = [ConfigSynonym(key.name, key.default, ConfigSource.DEFAULT)]
    if value != key.default:
        synonyms.insert(0, ConfigSynonym(key.name, value, ConfigSource.STATIC_BROKER))
    return ConfigEntry(key=key, value=value, source=synonyms[0].source, synonyms=synonyms, read_only=True)


def dynamic_entry(row: TopicConfigKey, defaults: LogDefaults) -> ConfigEntry:
    """A key of the logs. One that another key stands behind is null until it is set."""
    unset = None if row.broker_key in FALLBACKS else row.key.default
    key = replace(row.key, name=row.broker_key, default=unset)
    synonyms = list(defaults.synonyms(row))
    first = synonyms[0] if synonyms else ConfigSynonym(key.name, unset, ConfigSource.DEFAULT)
    return ConfigEntry(key=key, value=first.value, source=first.source, synonyms=synonyms)


def quota_entries(broker: Broker) -> Iterator[ConfigEntry]:
    """The limits of connections, and the other quotas that are set."""
    quotas, configured = broker.dynamic_quotas, broker.connection_quotas.configured
    for name in quotas.shown_keys(configured):
        yield quotas.entry(name, configured)


def cluster_entries(broker: Broker) -> Iterator[ConfigEntry]:
    """What was set on all nodes."""
    for name, value in broker.metadata.resource(ResourceType.BROKER, "").items():
        row = LOG_DEFAULT_KEYS.get(name)
        if is_quota_key(name):
            yield broker.dynamic_quotas.cluster_entry(name)
        elif row is not None:
            shown = rendered(row.key.type, value)
            source = ConfigSource.DYNAMIC_DEFAULT_BROKER
            yield ConfigEntry(
                key=replace(row.key, name=name),
                value=shown,
                source=source,
                synonyms=[ConfigSynonym(name, shown, source)],
            )
