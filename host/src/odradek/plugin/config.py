"""A table of the configuration, read with types, ranges and defaults; what is left over is a mistake."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path


class ConfigError(Exception):
    """The user's configuration cannot be used. Ends the start with exit status 2.

    Args:
        path: The key, from the top of the file: ``plugins.otlp.timeout.ms``.
        problem: What is wrong and what was expected.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path
        self.problem = problem


@dataclass(slots=True)
class PluginConfig:
    """One table, key by key. `finish` complains about keys that nobody asked for.

    Tables inside it are flat: ``[plugins.otlp.headers] x = "1"`` is the key ``headers.x``, so a dotted key
    may be quoted or not. The readers accept what a TOML file gives and what ``--set key=value`` gives (text).
    """

    path: str
    """Where the table stands: ``plugins.otlp``."""
    values: Mapping[str, object]
    known: set[str] = field(default_factory=set)

    def text(self, key: str, default: str | None = None) -> str | None:
        """A string."""
        value = self.value(key)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.error(key, f"expected a string, found {value!r}")
        return value

    def choice(self, key: str, default: str, choices: Sequence[str]) -> str:
        """One of ``choices``."""
        value = self.value(key)
        if value is None:
            return default
        if value not in choices:
            raise self.error(key, f"expected one of {', '.join(choices)}, found {value!r}")
        return str(value)

    def integer(self, key: str, default: int, least: int = 0, most: int = 2**63 - 1) -> int:
        """A whole number in ``least..most``."""
        value = self.value(key)
        if value is None:
            return default
        expected = f"expected a whole number from {least} to {most}, found {value!r}"
        if isinstance(value, bool) or not isinstance(value, int | str):
            raise self.error(key, expected)
        try:
            number = int(value)
        except ValueError:
            raise self.error(key, expected) from None
        if not least <= number <= most:
            raise self.error(key, expected)
        return number

    def boolean(self, key: str, default: bool) -> bool:
        """True or false."""
        value = self.value(key)
        if value is None:
            return default
        if isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        if not isinstance(value, bool):
            raise self.error(key, f"expected true or false, found {value!r}")
        return value

    def texts(self, key: str, default: Sequence[str] = ()) -> list[str]:
        """A list of strings, or one string with commas."""
        value = self.value(key)
        if value is None:
            return list(default)
        if isinstance(value, str):
            return [item.strip() for item in value.split(",")] if value.strip() else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.error(key, f"expected a list of strings, found {value!r}")
        return list(value)

    def table(self, key: str) -> dict[str, str]:
        """A table of strings below ``key``; empty when it is not there."""
        prefix = f"{key}."
        rows = {
            name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)
        }
        self.known.update(prefix + name for name in rows)
        for name, value in rows.items():
            if not isinstance(value, str):
                raise self.error(prefix + name, f"expected a string, found {value!r}")
        return {name: str(value) for name, value in rows.items()}

    def file(self, key: str) -> Path | None:
        """A path to a file that can be read."""
        text = self.text(key)
        if text is None:
            return None
        path = Path(text).expanduser()
        if not path.is_file():
            raise self.error(key, f"expected a file, found {text!r}")
        return path

    def value(self, key: str) -> object | None:
        """The raw value; None when the key is absent."""
        self.known.add(key)
        return self.values.get(key)

    def error(self, key: str, problem: str) -> ConfigError:
        """An error that names the key from the top of the file."""
        return ConfigError(f"{self.path}.{key}" if self.path else key, problem)

    def finish(self, listed_in: str = "") -> None:
        """Refuse keys that nothing has read.

        Args:
            listed_in: The page that lists all keys, where there are too many to name them in an error.

        Raises:
            ConfigError: A key is unknown.
        """
        for key in self.values:
            if key not in self.known:
                close = get_close_matches(key, self.known, 1)
                meant = f" (did you mean {close[0]}?)" if close else ""
                every = (
                    f"all keys: {listed_in}" if listed_in else f"known here: {', '.join(sorted(self.known))}"
                )
                raise self.error(key, f"unknown key{meant}; {every}")
