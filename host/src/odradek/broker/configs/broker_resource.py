"""BROKER resources: this node or, without a name, the settings of all nodes.

Defaults of topics, limits of connections, rates of replication and a few settings of rooms change at run
time; all other settings are read when the host starts. Keys that are not settings of this host are stored, as
by Kafka, and have no effect.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from odradek.broker.broker import Broker
from odradek.broker.config_entry import ConfigEntry
from odradek.broker.dynamic_config import CERTIFICATE_KEYS, RATE_KEYS, DynamicConfig
from odradek.broker.kafka_keys import kafka_keys, keys_of_one_broker
from odradek.plugin.config import ConfigError
from odradek.settings.listener_values import base_of
from odradek.settings.setting import Setting
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

FIXED = "Cannot update these configs dynamically"
WITHOUT_LISTENER = (
    "These security configs can be dynamically updated only per-listener using the listener prefix"
)
WITHOUT_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"
LISTENER_KEYS_OF_ALL = ("max.connections", "max.connection.creation.rate", "num.network.threads")
"""Listeners can have values of these on all brokers."""
MAX_KEYS = 1_000
"""Kafka's keys that change at run time are some 150, and as many more for each listener."""


class BrokerResource:
    """This node."""

    not_a_list = "Config value {lower} is not allowed for config key: {key}"

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Iterator[ConfigEntry]:
        """The node's keys; for the empty name the keys that are set at run time on all nodes."""
        check_name(name, broker, "Broker", " or empty string")
        config = broker.config
        if not name:
            yield from map(config.cluster_entry, config.on_cluster)
            return
        yield from map(config.entry, config.shown_keys() | (kafka_keys().keys() & set(asked)))

    def listed(self, key: str, broker: Broker) -> Setting | None:
        """Every list of the host or of Kafka; its default is Kafka's."""
        found = None if key in RATE_KEYS else broker.config.declaration(key)
        if found is None:
            raise ApiError(ErrorCode.INVALID_CONFIG, f"Unknown config name: {key}")
        return found

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Check the keys and the values."""
        config = broker.config
        refuse([key for key in after if config.is_fixed(key)], FIXED)
        refuse([key for key in after if key in CERTIFICATE_KEYS], WITHOUT_LISTENER)
        check_values(after, config)
        refuse([] if name else list(filter(needs_broker, after)), WITHOUT_BROKER)
        check_new_keys(before, after, broker)
        changed = replace(config, node=after) if name else replace(config, cluster=after)
        changed.check()
        texts = changed.certificate_texts()
        if texts != config.certificate_texts():
            check_certificates(texts, broker)

    def limit(self, broker: Broker) -> None:
        """None: requests cannot add brokers here."""

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Put the values in force: topics use them from the next append on, all others at once."""
        broker.load_dynamic_config()


def refuse(keys: Sequence[str], words: str) -> None:
    """Refuse keys, if there are any.

    Raises:
        ApiError: INVALID_REQUEST, with Kafka's words.
    """
    if keys:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"{words}: [{', '.join(keys)}]")


def check_values(texts: Mapping[str, str], config: DynamicConfig) -> None:
    """Check each value by itself; a listener's like the broker's.

    Raises:
        ApiError: INVALID_REQUEST, with Kafka's words.
    """
    try:
        for key, text in texts.items():
            declaration = config.setting(base_of(key))
            if declaration is not None:
                declaration.parse(text)
    except ConfigError as error:
        raise ApiError(ErrorCode.INVALID_REQUEST, error.problem) from None


def needs_broker(key: str) -> bool:
    """Whether a key cannot be set on all brokers: nearly every key of a listener is one."""
    base = base_of(key)
    return key in keys_of_one_broker() or (base != key and base not in LISTENER_KEYS_OF_ALL)


def check_new_keys(before: Mapping[str, str], after: Mapping[str, str], broker: Broker) -> None:
    """Check names and number of keys: anybody who may alter configurations can invent some.

    Raises:
        ApiError: POLICY_VIOLATION.
    """
    new = after.keys() - before.keys()
    for key in new:
        broker.names.check("configuration key", key)
    if new and len(after) > MAX_KEYS:
        raise ApiError(ErrorCode.POLICY_VIOLATION, f"A broker can have at most {MAX_KEYS} keys.")


def check_certificates(texts: Mapping[str, str], broker: Broker) -> None:
    """Check that certificates can be loaded with other settings.

    Raises:
        ApiError: INVALID_REQUEST: they cannot.
    """
    try:
        broker.certificates.check(texts)
    except ConfigError as error:
        raise ApiError(
            ErrorCode.INVALID_REQUEST, f"Invalid value for configuration {error.path}: {error.problem}"
        ) from None


def check_name(name: str, broker: Broker, what: str, otherwise: str) -> None:
    """Check that a name is the id of this broker, or empty.

    Raises:
        ApiError: INVALID_REQUEST: it is not.
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
