"""Labels on client metrics: the eight of KIP-714, and static ones."""

from __future__ import annotations

from odradek.plugin import CONTEXT_LABELS, DEFAULT_LABELS, PluginConfig, hookimpl
from odradek_enrich.context_enricher import ContextEnricher


@hookimpl
def odradek_enricher(config: PluginConfig) -> ContextEnricher | None:
    """Read ``labels`` and ``static.<name>``; None if they leave no label to set.

    Raises:
        ConfigError: A label does not exist, or a static label has the name of a label that the host sets.
    """
    names = label_names(config)
    static = config.table("static")
    for name in static:
        refuse_static(config, name, names)
    if not names and not static:
        return None
    return ContextEnricher(names, static)


def label_names(config: PluginConfig) -> tuple[str, ...]:
    """The labels to set, in the order of the KIP."""
    wanted = config.texts("labels", default=DEFAULT_LABELS)
    for name in wanted:
        if name not in CONTEXT_LABELS:
            raise config.error("labels", f"expected some of {', '.join(CONTEXT_LABELS)}, found {name!r}")
    return tuple(name for name in CONTEXT_LABELS if name in wanted)


def refuse_static(config: PluginConfig, name: str, names: tuple[str, ...]) -> None:
    """Refuse a static label whose name is empty or taken."""
    if not name:
        raise config.error("static", "expected the name of a label, found an empty name")
    if name in names:
        raise config.error(
            f"static.{name}",
            f"the host sets this label: choose another name, or list labels without {name!r}",
        )
