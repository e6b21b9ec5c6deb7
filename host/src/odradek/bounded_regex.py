"""Regular expressions of clients, compiled with RE2 within bounds of time and memory.

RE2 matches in time proportional to the text and to the steps of the program. Parsing is not bounded by
``max_mem``: a megabyte of ``\\pL`` takes seconds before RE2 refuses it. So the text is checked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import re2

MAX_PROGRAM_BYTES: Final = 1 << 20
"""The most memory of a compiled expression; RE2 refuses a larger one."""
MAX_EXPANSIONS: Final = 100
"""The most Unicode classes and repetition counts. RE2 expands each to as many as a thousand parts, in some
50 µs; other constructs take less than 1 µs.
"""
TOO_LARGE: Final = "pattern too large"
"""RE2's reason for a program that does not fit into its memory."""


class RegexError(ValueError):
    """The reason why an expression is refused."""


class RegexTooLargeError(RegexError):
    """The same, for an expression that costs too much."""


@dataclass(frozen=True, slots=True)
class RegexBounds:
    """The cost that an expression may have."""

    max_length: int = 10_000
    """In characters."""
    max_steps: int = 2_000
    """Of the compiled program; ``.*`` has 12."""


def re2_options(max_bytes: int | None = None) -> re2.Options:
    """RE2 as we use it: it does not write errors to stderr."""
    options = re2.Options()
    options.log_errors = False
    if max_bytes is not None:
        options.max_mem = max_bytes
    return options


def compiled_within(pattern: str, bounds: RegexBounds) -> Any:
    """Compile an expression.

    Raises:
        RegexError: RE2 does not accept it, or it is beyond the bounds.
    """
    if len(pattern) > bounds.max_length:
        raise RegexTooLargeError(f"it is longer than {bounds.max_length} characters")
    if sum(map(pattern.count, ("{", r"\p", r"\P"))) > MAX_EXPANSIONS:
        raise RegexTooLargeError(f"it has more than {MAX_EXPANSIONS} Unicode classes and repetition counts")
    program = compiled(pattern, MAX_PROGRAM_BYTES)
    if program.programsize > bounds.max_steps:
        raise RegexTooLargeError(f"it takes more than {bounds.max_steps} steps")
    return program


def compiled(pattern: str, max_bytes: int | None = None) -> Any:
    """Compile an expression without further bounds.

    Raises:
        RegexError: RE2 does not accept it.
    """
    try:
        return re2.compile(pattern, re2_options(max_bytes))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise (RegexTooLargeError if TOO_LARGE in text else RegexError)(text) from None
    except UnicodeEncodeError:
        raise RegexError("not Unicode text") from None
