"""Quota entities, and how their names are written in metric tags."""

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
    """A user name for tags and sensor names: URL-encoded like Kafka's Sanitizer.sanitize."""
    return quote(user, safe="").replace("~", "%7E")
