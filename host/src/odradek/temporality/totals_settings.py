"""The settings of a destination that gets cumulative values, and their keys in a plugin's table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from odradek.plugin import LABELS_MISSING, PluginConfig
from odradek.settings import NEW_FILE, TEXT, Items, declare, read_settings, section
from odradek.settings.setting import walk
from odradek.temporality.counts import Limits

DELTA: Final = "delta"
CUMULATIVE: Final = "cumulative"
FILE: Final = "totals.file"


def with_missing(names: Sequence[str]) -> tuple[str, ...]:
    """The attributes, and the one of labels that are missing."""
    return (*names, LABELS_MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsSettings:
    """A destination that gets cumulative values."""

    # fmt: off
    file: Path | None = declare(
        FILE, NEW_FILE, None,
        "The file of the totals, created if it is missing; each destination needs its own, on a disk that "
        "survives a restart.", unset="one in `data.dir`",
    )
    topic: str | None = declare(
        "totals.topic", TEXT, None,
        "With [`odradek forward`](../../host/docs/howto/forward-from-a-topic.md#totals), without "
        "`totals.file`: the topic of the totals, created if it is missing; each destination needs its own.",
        unset="the group and `.totals`",
    )
    ignored_attributes: Sequence[str] = declare(
        "totals.ignored.attributes", Items(collect=with_missing), (LABELS_MISSING,),
        "Attributes that enrichers of the host set on Resources, if they can change during a client's life: "
        "without this, a change begins new totals.", unset="none",
    )
    limits: Limits = section(Limits)
    file_key: str = FILE
    """The key of the file, from the top of the configuration."""
    # fmt: on


def read_totals(config: PluginConfig) -> TotalsSettings | None:
    """Read the keys of a destination; None if it gets delta values, as the clients send them.

    Raises:
        ConfigError: A value is invalid, or there are keys without effect.
    """
    if config.choice("temporality", DELTA, (DELTA, CUMULATIVE)) == DELTA:
        for _, each in walk(TotalsSettings):
            if config.value(each.name) is not None:
                raise config.error(each.name, f'expected with temporality = "{CUMULATIVE}" only')
        return None
    return read_cumulative(config)


def read_cumulative(config: PluginConfig) -> TotalsSettings:
    """Read the keys of a destination that always gets cumulative values.

    Raises:
        ConfigError: A value is invalid, or both a file and a topic are set.
    """
    found = read_settings(TotalsSettings, config)
    if found.file and found.topic:
        raise config.error("totals.topic", f"expected only one of {FILE} and totals.topic")
    key = f"{config.path}.{FILE}" if config.path else FILE
    return replace(found, topic=found.topic or None, file_key=key)
