"""BROKER resources: this node or, without a name, the settings of all nodes.

Defaults of topics, limits of connections and rates of replication change at run time; all other settings are
read when the host starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from odradek.broker.broker import Broker
from odradek.broker.config_entry import ConfigEntry, ConfigSynonym
from odradek.broker.configs.kafka_keys import kafka_keys
from odradek.broker.dynamic_config import dynamic_setting
from odradek.settings.setting import Setting
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource
from odradek.wire.error_code import ErrorCode


class BrokerResource:
    """This node."""

    def entries(self, name: str, broker: Broker, asked: Collection[str]) -> Sequence[ConfigEntry]:
        """The node's keys; for the empty name the keys that are set at run time on all nodes."""
        check_name(name, broker, "Broker", " or empty string")
        config = broker.config
        if not name:
            known = [key for key in config.on_cluster if dynamic_setting(key) is not None]
            return [config.cluster_entry(key) for key in known]
        shown = config.shown_keys()
        missing = [key for key in asked if key not in shown]
        return [config.entry(key) for key in shown] + kafkas_entries(missing)

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
        changed = replace(broker.config, node=after) if name else replace(broker.config, cluster=after)
        changed.check()

    def limit(self, broker: Broker) -> None:
        """None: requests cannot add brokers here."""

    def apply(self, name: str, properties: Mapping[str, str], broker: Broker) -> None:
        """Put the values in force: topics use them from the next append on, all others at once."""
        broker.load_dynamic_config()


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


def kafkas_entries(names: Iterable[str]) -> list[ConfigEntry]:
    """Describe those of these keys that Kafka has but this host does not, with Kafka's defaults."""
    entries = []
    for key in (kafka_keys()[name] for name in names if name in kafka_keys()):
        default = key.default_text
        synonyms = [] if default is None else [ConfigSynonym(key.name, default, ConfigSource.DEFAULT)]
        entries.append(
            ConfigEntry(
                key=key, value=default, source=ConfigSource.DEFAULT, synonyms=synonyms, read_only=True
            )
        )
    return entries
