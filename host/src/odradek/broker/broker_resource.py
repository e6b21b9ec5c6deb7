"""BROKER resources: this node shows what it was started with. Nothing here changes at run time."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

from odradek.broker.broker import Broker, BrokerSettings
from odradek.broker.config_key import ConfigEntry, ConfigKey, ConfigSynonym
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource, ConfigType
from odradek.wire.error_code import ErrorCode


def broker_key(name: str, kind: ConfigType, documentation: str) -> ConfigKey:
    """A key whose value is a field of `BrokerSettings`: ``num.partitions`` is ``num_partitions``."""
    default = next(field.default for field in fields(BrokerSettings) if field.name == name.replace(".", "_"))
    return ConfigKey(name=name, type=kind, default=text(default), documentation=documentation)


def text(value: object) -> str:
    """A setting as Kafka prints it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


KEYS = (
    broker_key("node.id", ConfigType.INT, "The id of this node, unique in its cluster"),
    broker_key(
        "auto.create.topics.enable",
        ConfigType.BOOLEAN,
        "Whether asking for a topic that does not exist creates it",
    ),
    broker_key(
        "num.partitions", ConfigType.INT, "Partitions of a topic that is created without saying how many"
    ),
    broker_key("fetch.max.bytes", ConfigType.INT, "The largest response to a fetch request"),
)
TELEMETRY_MAX_BYTES = ConfigKey(
    name="telemetry.max.bytes",
    type=ConfigType.INT,
    default="1048576",
    documentation="The largest compressed push of client metrics that is accepted",
)
MESSAGE_MAX_BYTES = ConfigKey(
    name="message.max.bytes",
    type=ConfigType.INT,
    default="1048588",
    documentation="The largest record batch that a topic takes by default",
)
OTHER_KEYS: Mapping[ConfigKey, Callable[[Broker], object]] = {
    MESSAGE_MAX_BYTES: lambda broker: broker.topics.defaults.max_message_bytes,
    TELEMETRY_MAX_BYTES: lambda broker: broker.telemetry.config.telemetry_max_bytes,
}
"""Keys whose values other rooms hold."""


class BrokerResource:
    """This node."""

    def entries(self, name: str, broker: Broker) -> Sequence[ConfigEntry]:
        """The node's settings; nothing for the empty name, which means the cluster's dynamic defaults."""
        self.check_name(name, broker, "or empty string, but received")
        if not name:
            return ()
        own = {key: getattr(broker.settings, key.name.replace(".", "_")) for key in KEYS}
        others = {key: read(broker) for key, read in OTHER_KEYS.items()}
        return [entry(key, text(value)) for key, value in (own | others).items()]

    def check_name(self, name: str, broker: Broker, otherwise: str) -> None:
        """A broker is named by its id, or not at all."""
        if not name:
            return
        try:
            node_id = int(name)
        except ValueError:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Broker id must be an integer, but it is: {name}"
            ) from None
        expected = broker.settings.node_id
        if node_id != expected:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Unexpected broker id, expected {expected} {otherwise} {name}"
            )

    def type_of(self, key: str) -> ConfigType:
        """No key can be changed, so no list either."""
        return ConfigType.UNKNOWN

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Refuse every change."""
        self.check_name(name, broker, "but received")
        if after:
            keys = ", ".join(after)
            raise ApiError(ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{keys}]")

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Nothing changes."""


def entry(key: ConfigKey, value: str) -> ConfigEntry:
    """A setting, taken to stand in the configuration file when it differs from the default."""
    default = ConfigSynonym(key.name, key.default, ConfigSource.DEFAULT)
    if value == key.default:
        return ConfigEntry(
            key=key, value=value, source=ConfigSource.DEFAULT, synonyms=[default], read_only=True
        )
    own = ConfigSynonym(key.name, value, ConfigSource.STATIC_BROKER)
    return ConfigEntry(
        key=key, value=value, source=ConfigSource.STATIC_BROKER, synonyms=[own, default], read_only=True
    )
