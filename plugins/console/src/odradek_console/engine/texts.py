"""Texts of clients and clusters, which may contain anything."""

from __future__ import annotations

from typing import Final

MAX_TEXT: Final = 256
"""Characters of a text of a client that are kept."""


def printable(text: str) -> str:
    """A text without characters that steer a terminal or change the direction of writing."""
    return "".join(each if each.isprintable() else "\ufffd" for each in text)


def cut(text: str) -> str:
    """A text of a client, of bounded length and printable."""
    return printable(text[:MAX_TEXT])
