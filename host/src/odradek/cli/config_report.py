"""The output of ``odradek configs --describe`` for one resource: the lines of kafka-configs.sh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from odradek.client.resources import ConfigEntry, ConfigResource
from odradek.wire.config_resource import ConfigSource, ResourceType

SOURCES = {
    ConfigSource.UNKNOWN: "UNKNOWN",
    ConfigSource.TOPIC: "DYNAMIC_TOPIC_CONFIG",
    ConfigSource.DYNAMIC_BROKER: "DYNAMIC_BROKER_CONFIG",
    ConfigSource.DYNAMIC_DEFAULT_BROKER: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    ConfigSource.STATIC_BROKER: "STATIC_BROKER_CONFIG",
    ConfigSource.DEFAULT: "DEFAULT_CONFIG",
    ConfigSource.DYNAMIC_BROKER_LOGGER: "DYNAMIC_BROKER_LOGGER_CONFIG",
    ConfigSource.CLIENT_METRICS: "DYNAMIC_CLIENT_METRICS_CONFIG",
    ConfigSource.GROUP: "DYNAMIC_GROUP_CONFIG",
}
"""The names in ConfigEntry.ConfigSource of the Java client."""
OWN = {
    ResourceType.TOPIC: ConfigSource.TOPIC,
    ResourceType.CLIENT_METRICS: ConfigSource.CLIENT_METRICS,
    ResourceType.GROUP: ConfigSource.GROUP,
}
"""The source of a value that was set on the resource itself, by type of resource."""


def own_source(resource: ConfigResource) -> ConfigSource:
    """The source of a value that was set on this resource itself."""
    if resource.type == ResourceType.BROKER:
        return ConfigSource.DYNAMIC_BROKER if resource.name else ConfigSource.DYNAMIC_DEFAULT_BROKER
    return OWN[ResourceType(resource.type)]


def lines(resource: ConfigResource, entries: Sequence[ConfigEntry], everything: bool) -> Iterator[str]:
    """Yield a line per key, in the order of names.

    Args:
        resource: The resource that was described.
        entries: Its keys with their synonyms.
        everything: Whether to show keys that were not set on the resource itself.
    """
    for entry in shown_entries(resource, entries, everything):
        synonyms = ", ".join(
            f"{source_text(row.source)}:{row.name}={value_text(row.value)}" for row in entry.synonyms
        )
        sensitive = str(entry.sensitive).lower()
        yield f"  {entry.name}={value_text(entry.value)} sensitive={sensitive} synonyms={{{synonyms}}}"


def shown_configs(
    kind: str, resource: ConfigResource, entries: Sequence[ConfigEntry], everything: bool
) -> Iterator[dict[str, Any]]:
    """Yield the same keys as JSON objects; ``kind`` is the type of the resource for people."""
    for entry in shown_entries(resource, entries, everything):
        yield {
            "type": kind,
            "name": resource.name or None,
            "config": entry.name,
            "value": entry.value,
            "source": source_text(entry.source),
            "sensitive": entry.sensitive,
            "synonyms": [
                {"config": row.name, "value": row.value, "source": source_text(row.source)}
                for row in entry.synonyms
            ],
        }


def shown_entries(
    resource: ConfigResource, entries: Sequence[ConfigEntry], everything: bool
) -> list[ConfigEntry]:
    """The keys to show, in the order of their names."""
    source = own_source(resource)
    shown = [entry for entry in entries if everything or entry.source == source]
    return sorted(shown, key=lambda entry: entry.name)


def source_text(number: int) -> str:
    """The name of a source. A newer broker may send a number that this client does not know."""
    return SOURCES[ConfigSource(number)] if number in SOURCES else SOURCES[ConfigSource.UNKNOWN]


def value_text(value: str | None) -> str:
    """The value, or ``null`` if the broker sent none (the key is sensitive or not set)."""
    return "null" if value is None else value
