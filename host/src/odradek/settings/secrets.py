"""Values that must not be shown: passwords, tokens, private keys.

A secret travels as a `Secret`, a text that looks like any other to the code that uses it. Errors quote
values with ``repr``, which hides it. `Secrets` finds the same texts where they escaped: in a log line, or in
an error of a library.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self

from odradek.plugin.config import ConfigError

HIDDEN: Final = "[hidden]"
SHORTEST: Final = 4
"""Shorter secrets are not searched for in other texts, where they would be found everywhere."""
SECRET_KEY = re.compile(r"(^|[._-])(password|passwd|passphrase|secret|token|api[._-]?key)$", re.IGNORECASE)
"""The keys of plugins that hold a secret. Their tables are not declared, so the names must tell."""


class Secret(str):
    """A text that its ``repr`` does not show."""

    parts: tuple[str, ...]
    """Parts of the text that are secrets by themselves."""

    def __new__(cls, text: str, parts: Iterable[str] = ()) -> Self:
        made = super().__new__(cls, text)
        made.parts = tuple(parts)
        return made

    def __repr__(self) -> str:
        return repr(HIDDEN)


def secret(value: object, parts: Iterable[str] = ()) -> object:
    """The same value as a secret: a text, or a list of texts. Other values cannot be secrets."""
    if isinstance(value, Secret):
        return value
    if isinstance(value, str):
        return Secret(value, parts)
    return [secret(each, parts) for each in value] if isinstance(value, list) else value


def texts_of(value: object) -> Iterator[str]:
    """Yield the secrets in a value."""
    if isinstance(value, Secret):
        yield str(value)
        yield str(value).partition("=")[2]  # of a header
        yield from value.parts
    elif isinstance(value, list):
        for each in value:
            yield from texts_of(each)


@dataclass(frozen=True)
class Secrets:
    """The secrets of a configuration."""

    by_key: Mapping[str, object]
    """Their values, which are secrets or have some in them."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self.by_key)})"

    @cached_property
    def pattern(self) -> re.Pattern[str] | None:
        """Finds every secret in every form of the log: as it is, in JSON, and with escaped characters."""
        texts = {text for value in self.by_key.values() for text in texts_of(value)}
        # the lines of a key are searched for one by one: only its first line may be in an error
        lines = {line.strip() for text in texts for line in (text, *text.splitlines())}
        found = {form for line in lines if len(line) >= SHORTEST for form in forms(line)}
        longest_first = sorted(found, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def hide(self, text: str) -> str:
        """Return a text without the secrets."""
        return text if self.pattern is None else self.pattern.sub(HIDDEN, text)

    @contextmanager
    def hidden_in_errors(self) -> Iterator[None]:
        """Hide the secrets in errors of the configuration."""
        try:
            yield
        except ConfigError as error:
            error.problem = self.hide(error.problem)
            error.args = (f"{error.path}: {error.problem}",)
            raise


def forms(text: str) -> Iterable[str]:
    """A text as logs may print it."""
    return {text, repr(text)[1:-1], json.dumps(text)[1:-1], text.encode("unicode_escape").decode()}
