"""What topics are configured as where they do not say otherwise, and who said it.

After DynamicBrokerConfig and ConfigHelper (Kafka 4.3): the keys of LogConfig have a broker's key each, which
can be set on the node, on the whole cluster, or in the configuration file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from odradek.broker.config_key import ConfigSynonym, rendered
from odradek.broker.topic_config_keys import FALLBACKS, TOPIC_CONFIG_KEYS, TopicConfigKey, value_text
from odradek.log.log_config import LogConfig
from odradek.plugin.config import ConfigError
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource
from odradek.wire.error_code import ErrorCode

LOG_DEFAULT_KEYS: Mapping[str, TopicConfigKey] = {row.broker_key: row for row in TOPIC_CONFIG_KEYS}
"""By the broker's key."""


@dataclass(slots=True)
class LogDefaults:
    """The defaults of one host. Sets of keys are in the broker's names."""

    static: LogConfig
    """From the configuration file."""
    cluster: Mapping[str, str] = field(default_factory=dict)
    """Set at run time on all brokers (BROKER without a name)."""
    node: Mapping[str, str] = field(default_factory=dict)
    """Set at run time on this one; stronger."""

    def effective(self) -> LogConfig:
        """What a topic without keys goes by.

        Raises:
            ApiError: INVALID_REQUEST: a value is not legal.
        """
        values = {
            LOG_DEFAULT_KEYS[key].key.name: value for key, value in {**self.cluster, **self.node}.items()
        }
        try:
            return LogConfig.parse(values, self.static)
        except ConfigError as error:
            raise ApiError(ErrorCode.INVALID_REQUEST, in_broker_words(error)) from None

    def synonyms(self, row: TopicConfigKey) -> Iterator[ConfigSynonym]:
        """What stands behind a key of a topic, strongest first."""
        name, kind = row.broker_key, row.key.type
        nothing = True
        for keys, source in (
            (self.node, ConfigSource.DYNAMIC_BROKER),
            (self.cluster, ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ):
            if name in keys:
                nothing = False
                yield ConfigSynonym(name, rendered(kind, keys[name]), source)
        static = value_text(self.static, row.key.name)
        if static != row.key.default:
            nothing = False
            yield ConfigSynonym(name, static, ConfigSource.STATIC_BROKER)
        if name not in FALLBACKS:
            yield ConfigSynonym(name, row.key.default, ConfigSource.DEFAULT)
        elif not nothing:
            yield ConfigSynonym(*FALLBACKS[name], ConfigSource.DEFAULT)


def in_broker_words(error: ConfigError) -> str:
    """What is wrong with a value, with the key that was set for the one that it became."""
    row = next((row for row in TOPIC_CONFIG_KEYS if row.key.name == error.path), None)
    if row is None:
        return error.problem
    return error.problem.replace(f"configuration {error.path}:", f"configuration {row.broker_key}:")
