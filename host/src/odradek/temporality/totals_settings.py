"""The settings of a destination that gets cumulative values, and their keys in a plugin's table."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odradek.plugin import LABELS_MISSING, PluginConfig
from odradek.temporality.counts import Limits

DELTA: Final = "delta"
CUMULATIVE: Final = "cumulative"
KEYS: Final = (
    "totals.file",
    "totals.topic",
    "totals.max.series",
    "totals.max.client.series",
    "totals.max.bytes",
    "totals.retain.ms",
    "totals.ignored.attributes",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsSettings:
    """A destination that gets cumulative values."""

    file: Path | None = None
    """The file of the totals, created if it is missing; None for one in the host's data directory."""
    topic: str | None = None
    """The topic of the totals, for processes that share a cluster's topic; None for a default."""
    file_key: str = "totals.file"
    """The key of the file, from the top of the configuration."""
    limits: Limits = field(default_factory=Limits)
    ignored_attributes: tuple[str, ...] = (LABELS_MISSING,)
    """Attributes of Resources that the host's enrichers set. A series stays the same if they change."""


def read_totals(config: PluginConfig) -> TotalsSettings | None:
    """Read the keys of a destination; None if it gets delta values, as the clients send them.

    Raises:
        ConfigError: A value is invalid, or there are keys without effect.
    """
    if config.choice("temporality", DELTA, (DELTA, CUMULATIVE)) == DELTA:
        for key in KEYS:
            if config.value(key) is not None:
                raise config.error(key, f'expected with temporality = "{CUMULATIVE}" only')
        return None
    return read_cumulative(config)


def read_cumulative(config: PluginConfig) -> TotalsSettings:
    """Read the keys of a destination that always gets cumulative values.

    Raises:
        ConfigError: A value is invalid, or both a file and a topic are set.
    """
    text, topic = config.text("totals.file"), config.text("totals.topic")
    if text and topic:
        raise config.error("totals.topic", "expected only one of totals.file and totals.topic")
    path = Path(text).expanduser() if text else None
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise config.error("totals.file", f"expected a file in an existing folder, found {text!r}")
    usual = Limits()
    return TotalsSettings(
        file=path,
        topic=topic or None,
        file_key=f"{config.path}.totals.file" if config.path else "totals.file",
        limits=Limits(
            max_streams=config.integer("totals.max.series", usual.max_streams, least=1),
            max_client_streams=config.integer("totals.max.client.series", usual.max_client_streams, least=1),
            max_bytes=config.integer("totals.max.bytes", usual.max_bytes, least=1 << 20),
            retain_ms=config.integer("totals.retain.ms", usual.retain_ms, least=usual.linger_ms),
        ),
        ignored_attributes=(*config.texts("totals.ignored.attributes"), LABELS_MISSING),
    )
