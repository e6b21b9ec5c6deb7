"""``--add-config``: ``k1=v1,k2=[v2,v3]``.

A comma inside brackets does not separate items. Brackets that enclose a whole value are removed; brackets
inside a value stay.
"""

from __future__ import annotations

from collections.abc import Iterator

import click

EXPECTED = "expected key=value or key=[value1,value2]"


def parse_config_list(text: str) -> dict[str, str]:
    """Parse the list into values by key.

    Raises:
        click.UsageError: An item has no key or no ``=``, or a bracket is not closed.
    """
    found = {}
    for item in items(text):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not key:
            raise click.UsageError(f"option --add-config: {EXPECTED}, found {item!r}")
        found[key] = value[1:-1].strip() if is_enclosed(value) else value
    return found


def items(text: str) -> Iterator[str]:
    """Split the text at the commas that are outside brackets.

    Raises:
        click.UsageError: A bracket is not closed.
    """
    depth = start = 0
    for at, letter in enumerate(text):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth = max(0, depth - 1)
        elif letter == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    if depth:
        raise click.UsageError(f"option --add-config: missing ] in {text!r}")
    yield text[start:]


def is_enclosed(value: str) -> bool:
    """Whether one pair of brackets encloses the whole value: true for ``[a,b]``, false for ``[a]x[b]``."""
    if not value.startswith("["):
        return False
    depth = 0
    for at, letter in enumerate(value):
        depth += (letter == "[") - (letter == "]")
        if depth == 0:
            return at == len(value) - 1
    return False
