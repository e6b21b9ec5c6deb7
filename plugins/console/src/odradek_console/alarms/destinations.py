"""Where alarms go: addresses of Apprise, from a file that only its owner should read.

The addresses hold passwords and tokens, so a log line has the name of a destination instead, and of what
Apprise says only what is not a part of the address.
"""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from odradek.plugin import ConfigError
from odradek_console.alarms.alarms import Message
from odradek_console.table_file import read_tables, warn_of_readers

MISSING: Final = "Apprise is not installed: pip install 'odradek-console[alarms]'"
MOST: Final = 20
KEYS: Final = ("name", "url")
LEAST_SECRET: Final = 4
"""Shorter parts of an address are words of the language, too."""
SPLIT: Final = re.compile(r"[:/@?&=#]+")
SEND_S: Final = 30.0
"""Time of an attempt."""


@dataclass(frozen=True, slots=True)
class Destination:
    """One address."""

    name: str
    send: Callable[[Message], str]
    """Sends a message; returns what went wrong, empty if nothing did. It takes `SEND_S` at most."""


def read_destinations(path: Path) -> list[Destination]:
    """The destinations of a file.

    Raises:
        ConfigError: The file is not usable, or Apprise is not installed. The message never shows an address.
    """
    found: dict[str, Destination] = {}
    for place, row in read_tables(path, "destination", MOST, KEYS, KEYS):
        name, url = row["name"], row["url"]
        if not isinstance(name, str) or not name.isprintable() or not name.strip() or name in found:
            raise ConfigError(f"{place}.name", "expected a printable name of its own")
        if not isinstance(url, str):
            raise ConfigError(f"{place}.url", "expected an address of Apprise")
        found[name] = destination(place, name, url)
    warn_of_readers(path, "addresses of alarms", "chmod 600")
    return list(found.values())


def destination(place: str, name: str, url: str, limit_s: float = SEND_S) -> Destination:
    """A destination of an address.

    Raises:
        ConfigError: Apprise does not know such addresses, or it is not installed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Apprise's own business
        is_known = knows(place, url)
    if not is_known:
        raise ConfigError(
            f"{place}.url",
            "expected an address of Apprise, such as slack://..., mailtos://... or jsons://...",
        )

    def send(message: Message) -> str:
        asked = json.dumps({"url": url, "title": message.title, "body": message.body})
        command = [sys.executable, "-m", "odradek_console.alarms"]
        try:
            done = subprocess.run(
                command, input=asked, capture_output=True, text=True, timeout=limit_s, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {limit_s:g} s"
        said = (done.stderr.strip().splitlines() or [""])[-1]
        return masked(said, url) or "no answer, or a refusal" if done.returncode else ""

    return Destination(name, send)


def knows(place: str, url: str) -> bool:
    """Whether Apprise knows such addresses.

    Raises:
        ConfigError: It is not installed.
    """
    try:
        from apprise import Apprise
    except ImportError:
        raise ConfigError(place, MISSING) from None
    logging.getLogger("apprise").setLevel(logging.CRITICAL)  # it names addresses that it does not know
    return Apprise.instantiate(url) is not None


def masked(text: str, url: str) -> str:
    """A text without the parts of an address, except for its host."""
    host = urlsplit(url).hostname or ""
    parts = {found for each in (url, unquote(url)) for found in SPLIT.split(each.partition("://")[2])}
    for each in sorted(parts - {host}, key=len, reverse=True):
        if len(each) >= LEAST_SECRET:
            text = re.sub(re.escape(each), "...", text, flags=re.IGNORECASE)
    return text
