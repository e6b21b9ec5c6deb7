"""Labels on client metrics: the eight of KIP-714, and static ones."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from odradek.plugin import CONTEXT_LABELS, DEFAULT_LABELS, PluginConfig, hookimpl
from odradek.settings import TABLE, Items, declare, read_settings
from odradek_enrich.context_enricher import ContextEnricher


def in_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Labels in the order of the KIP."""
    return tuple(name for name in CONTEXT_LABELS if name in labels)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnrichSettings:
    """The plugin's table."""

    # fmt: off
    labels: Collection[str] = declare(
        "labels", Items(tuple(CONTEXT_LABELS), collect=in_order), DEFAULT_LABELS,
        "The labels to set, from the table below; `[]` is none.", unset="all but `node_id`",
    )
    static: Mapping[str, str] = declare(
        "static", TABLE, {}, "Labels with the same text on every metric, by name.", unset="none",
    )
    # fmt: on


@hookimpl
def odradek_enricher(config: PluginConfig) -> ContextEnricher | None:
    """Read ``labels`` and ``static.<name>``; None if they leave no label to set.

    Raises:
        ConfigError: A label does not exist, or a static label has the name of a label that the host sets.
    """
    settings = read_settings(EnrichSettings, config)
    for name in settings.static:
        refuse_static(config, name, settings.labels)
    if not settings.labels and not settings.static:
        return None
    return ContextEnricher(tuple(settings.labels), settings.static)


def refuse_static(config: PluginConfig, name: str, names: Collection[str]) -> None:
    """Refuse a static label whose name is empty or taken."""
    if not name:
        raise config.error("static", "expected the name of a label, found an empty name")
    if name in names:
        raise config.error(
            f"static.{name}",
            f"the host sets this label: choose another name, or list labels without {name!r}",
        )
