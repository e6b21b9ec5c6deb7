"""Declared settings: each key has one declaration, from which everything else is derived.

A plugin declares the keys of its table as the host does:

>>> from dataclasses import dataclass
>>> from odradek.plugin import PluginConfig
>>> from odradek.settings import Duration, Whole, declare, read_settings
>>> @dataclass(frozen=True, slots=True, kw_only=True)
... class CmdbSettings:
...     timeout_ms: int = declare("timeout", Duration(100, 60_000), 2_000, "Time for one question.")
...     retries: int = declare("retries", Whole(bound=10), 3, "Further attempts.", unit="attempts")
>>> read_settings(CmdbSettings, PluginConfig("plugins.cmdb", {"timeout": "200ms"}))
CmdbSettings(timeout_ms=200, retries=3)
"""

from __future__ import annotations

from odradek.settings.kinds import (
    FILE,
    INT,
    LIST,
    LONG,
    NEW_FILE,
    TABLE,
    TEXT,
    Choice,
    Duration,
    Flag,
    Items,
    Kind,
    Number,
    Special,
    Whole,
)
from odradek.settings.reading import Checked, read_settings
from odradek.settings.setting import section
from odradek.settings.setting import setting as declare

__all__ = [
    "FILE",
    "INT",
    "LIST",
    "LONG",
    "NEW_FILE",
    "TABLE",
    "TEXT",
    "Checked",
    "Choice",
    "Duration",
    "Flag",
    "Items",
    "Kind",
    "Number",
    "Special",
    "Whole",
    "declare",
    "read_settings",
    "section",
]
