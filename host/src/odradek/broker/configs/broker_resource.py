"""BROKER resources: this node or, without a name, the settings of all nodes.

Defaults of topics, limits of connections and rates of replication change at run time; all other settings are
read when the host starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from odradek.broker.broker import Broker
from odradek.broker.config_entry import ConfigEntry, ConfigSynonym
from odradek.broker.configs.kafka_keys import kafka_keys
from odradek.broker.dynamic_config import CERTIFICATE_KEYS, dynamic_setting
from odradek.plugin.config import ConfigError
from odradek.settings.listener_values import base_of
from odradek.settings.setting import Setting
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource
from odradek.wire.error_code import ErrorCode

WITHOUT_LISTENER = (
    "These security configs can be dynamically updated only per-listener using the listener prefix"
)
WITHOUT_BROKER = "Cannot update these configs at default cluster level, broker id must be specified"


class BrokerResource:
    """This node."""

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Iterator[ConfigEntry]:
        """The node's keys; for the empty name the keys that are set at run time on all nodes."""
        check_name(name, broker, "Broker", " or empty string")
        config = broker.config
        if not name:
            yield from map(config.cluster_entry, filter(dynamic_setting, config.on_cluster))
            return
        shown = config.shown_keys()
        yield from map(config.entry, shown)
        yield from kafkas_entries(key for key in asked if key not in shown)

    def listed(self, key: str) -> Setting | None:
        """``log.cleanup.policy`` is a list that can be changed; its default is Kafka's."""
        return dynamic_setting(key)

    def validate(
        self, name: str, before: Mapping[str, str], after: Mapping[str, str], broker: Broker
    ) -> None:
        """Check the name, the keys and the values."""
        check_name(name, broker, "Node", "")
        fixed = [key for key in after if dynamic_setting(key) is None]
        foreign = [key for key in fixed if key not in broker.start_values]
        if foreign:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{', '.join(foreign)}: not a setting of this host")
        if fixed:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
            )
        check_certificate_keys(after, on_cluster=not name)
        changed = replace(broker.config, node=after) if name else replace(broker.config, cluster=after)
        changed.check()
        texts = changed.certificate_texts()
        if texts != broker.config.certificate_texts():
            check_certificates(texts, broker)

    def limit(self, broker: Broker) -> None:
        """None: requests cannot add brokers here."""

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Put the values in force: topics use them from the next append on, all others at once."""
        broker.load_dynamic_config()


def check_certificate_keys(keys: Iterable[str], *, on_cluster: bool) -> None:
    """Check that settings of certificates are for one listener of this broker.

    Raises:
        ApiError: INVALID_REQUEST: they are not.
    """
    found = [key for key in keys if base_of(key) in CERTIFICATE_KEYS]
    for wrong, words in (
        ([key for key in found if key in CERTIFICATE_KEYS], WITHOUT_LISTENER),
        (found if on_cluster else [], WITHOUT_BROKER),
    ):
        if wrong:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{words}: [{', '.join(wrong)}]")


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


def kafkas_entries(names: Iterable[str]) -> Iterator[ConfigEntry]:
    """Describe those of these keys that Kafka has but this host does not, with Kafka's defaults."""
    for key in (kafka_keys()[name] for name in names if name in kafka_keys()):
        default = key.default_text
        synonyms = [] if default is None else [ConfigSynonym(key.name, default, ConfigSource.DEFAULT)]
        yield ConfigEntry(
            key=key, value=default, source=ConfigSource.DEFAULT, synonyms=synonyms, read_only=True
        )
