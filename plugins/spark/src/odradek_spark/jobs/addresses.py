"""Addresses of destinations; a module of its own, because hosts read their settings with it."""

from __future__ import annotations

from urllib.parse import urlsplit


def is_address(url: str) -> bool:
    """Whether a text is an http or https URL with a host, without blanks and control characters."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if not url.isprintable() or " " in url:  # `urlsplit` leaves out line breaks
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)
