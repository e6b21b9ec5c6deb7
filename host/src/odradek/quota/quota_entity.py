"""Whom a quota is for, and how its name is written in tags."""

from __future__ import annotations

from urllib.parse import quote

from odradek.plugin.client_quota import (
    ABSENT,
    DEFAULT,
    ClientQuotaEntity,
    ClientQuotaType,
    ConfigEntityType,
)

__all__ = [
    "ABSENT",
    "DEFAULT",
    "ClientQuotaEntity",
    "ClientQuotaType",
    "ConfigEntityType",
    "sanitize",
]


def sanitize(user: str) -> str:
    """A user's name in tags and names of sensors: URL-encoded, as Sanitizer.sanitize does it."""
    return quote(user, safe="").replace("~", "%7E")
