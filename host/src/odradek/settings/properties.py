"""Files of ``java.util.Properties``."""

from __future__ import annotations

from collections.abc import Mapping


def properties(text: str) -> Mapping[str, str]:
    """Parse the lines ``key=value``, ``key: value`` or ``key value`` (java.util.Properties).

    ``#`` or ``!`` starts a comment. A backslash at the end continues the line.
    """
    found: dict[str, str] = {}
    for line in text.replace("\\\n", "").splitlines():
        stripped = line.strip()
        if stripped and stripped[0] not in "#!":
            key, value = parted(stripped)
            found[key] = value
    return found


def parted(line: str) -> tuple[str, str]:
    """Split a line into key and value."""
    end = next((at for at, letter in enumerate(line) if letter in "=: \t"), len(line))
    key, rest = line[:end], line[end:].strip()
    return key, rest[1:].strip() if rest[:1] in ("=", ":") else rest
