"""The repeatable options ``--reader-property`` and ``--formatter-property``: ``key=value``, as in Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click


def record_properties(option: str, texts: Iterable[str], defaults: Mapping[str, str]) -> dict[str, str]:
    """The properties with their defaults.

    Raises:
        click.UsageError: A text has no ``=``, or there is no such property.
    """
    found = dict(defaults)
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise click.UsageError(f"option {option}: expected key=value, found {text!r}")
        if key not in defaults:
            raise click.UsageError(f"option {option}: unknown property {key}; known: {', '.join(defaults)}")
        found[key] = value
    return found


def is_true(text: str) -> bool:
    """Whether a property is set, as Java parses booleans."""
    return text.strip().lower() == "true"
