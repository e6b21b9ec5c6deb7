"""Files of ``java.util.Properties``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

JAAS: Final = "sasl.jaas.config"
UNSECURED_SUBJECT: Final = "unsecuredLoginStringClaim_sub"
"""The user of OAUTHBEARER's tokens without a signature."""
JAAS_OPTION: Final = re.compile(
    rf"\b(?P<key>username|password|{UNSECURED_SUBJECT})"
    r'\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<bare>[^\s";]+))'
)
"""An option of a Kafka login module, as in ``ScramLoginModule required username="x" password="y";``."""


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


def jaas_options(text: str) -> dict[str, str]:
    """The options of a login module that clients here use."""
    return {
        found["key"]: found["bare"] or re.sub(r"\\(.)", r"\1", found["quoted"])
        for found in JAAS_OPTION.finditer(text)
    }
