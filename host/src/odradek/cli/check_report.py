"""What ``--check`` of a program found, in lines for a terminal of 80 columns."""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from odradek.client.command_config import CommandConfig
from odradek.client.errors import ClientError
from odradek.plugin.config import ConfigError
from odradek.process.log_format import Size
from odradek.security.key_store import read_key_store

WIDTH: Final = 80
TIMEOUT_MS: Final = 5_000
"""Of each request of a check: who waits for it sits at a terminal."""
OK, FAIL, WARN = "ok", "FAIL", "warn"
NARROW, WIDE = 6, 12
"""Columns of the words before a line."""
MOST_SHOWN: Final = 5
SCARCE_BYTES: Final = 1 << 30


@dataclass(slots=True)
class CheckReport:
    """The meaning of a configuration, the results of the checks, and what could not be checked."""

    meaning: list[tuple[str, str]] = field(default_factory=list)
    """A word and a line."""
    results: list[tuple[str, str]] = field(default_factory=list)
    """`OK`, `FAIL` or `WARN`, and a line."""
    unknown: list[str] = field(default_factory=list)
    """What a check cannot know from here."""

    def means(self, word: str, text: str) -> None:
        self.meaning.append((word, text))

    def ok(self, text: str) -> None:
        self.results.append((OK, text))

    def fail(self, text: str) -> None:
        self.results.append((FAIL, text))

    def warn(self, text: str) -> None:
        self.results.append((WARN, text))

    @contextmanager
    def attempt(self, what: str = "") -> Iterator[None]:
        """Take an error of the body as the result of a check."""
        try:
            yield
        except (ClientError, ConfigError) as error:
            self.fail(f"{what}: {error}" if what else str(error))

    @property
    def failed(self) -> int:
        """The number of failed checks."""
        return sum(status == FAIL for status, _ in self.results)

    def lines(self) -> Iterator[str]:
        """The report."""
        yield "This configuration means:"
        for word, text in self.meaning:
            yield from wrapped(word, text, WIDE)
        yield "Checked:"
        for status, text in self.results:
            yield from wrapped(status, text, NARROW)
        yield "Not checked:"
        for text in self.unknown:
            yield from wrapped("", text, 0)


def wrapped(word: str, text: str, width: int) -> Iterator[str]:
    """Lines of a terminal with a word before the first of them."""
    room = " " * (2 + width)
    yield from textwrap.wrap(
        text,
        WIDTH - 1,
        initial_indent=f"  {word:<{width}}",
        subsequent_indent=room,
        break_long_words=False,
        break_on_hyphens=False,
    )


def identity(connection: CommandConfig) -> str:
    """As whom a program connects, and how."""
    protocol = connection.table.text("security.protocol") or "PLAINTEXT"
    if connection.login is not None:
        who = f"user {connection.login.user}" if connection.login.user else "the user of its token"
        return f"{who} ({connection.login.mechanism}) over {protocol}"
    key_store = None if connection.tls is None else read_key_store(connection.tls.settings)
    if key_store is not None and key_store.certificates:
        return f"{key_store.certificates[0].subject} (its certificate) over {protocol}"
    return f"ANONYMOUS over {protocol}"


def check_disk(report: CheckReport, key: str, path: Path) -> bool:
    """Check that a directory can be made or written, and has room; say whether it can."""
    there = next(each for each in (path.absolute(), *path.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        report.fail(f"{key}: {there} is not a directory that this user can write")
        return False
    free = shutil.disk_usage(there).free
    found = f"{key}: {path} can be {'written' if there == path.absolute() else 'made'}, {Size(free)} free"
    (report.warn if free < SCARCE_BYTES else report.ok)(found)
    return True


def shortened(found: Iterable[object]) -> str:
    """The first of many things."""
    texts = [str(each) for each in found]
    more = f" and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return ", ".join(texts[:MOST_SHOWN]) + more
