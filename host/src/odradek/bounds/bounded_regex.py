"""Regular expressions of clients, compiled with RE2 within bounds of time and memory.

RE2 matches in time proportional to the text and to the steps of the program. Parsing is not bounded by
``max_mem``: a megabyte of ``\\pL`` takes seconds before RE2 refuses it. So the text is checked first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

import re2

MAX_PROGRAM_BYTES: Final = 1 << 20
"""The most memory of a compiled expression while it matches."""
STEP_BYTES: Final = 32
"""Memory for each step while an expression is checked. RE2 gives up above the bound, and soon."""
MAX_EXPANSIONS: Final = 100
"""The most Unicode classes and repetition counts. RE2 expands each to as many as a thousand parts, in some
50 µs; other constructs take less than 1 µs.
"""
SMALLEST_BYTES: Final = 8_192
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
    return compiled(pattern, MAX_PROGRAM_BYTES + STEP_BYTES * checked_steps(pattern, bounds))


def checked_steps(pattern: str, bounds: RegexBounds) -> int:
    """The steps of an expression, which is compiled for this alone.

    Raises:
        RegexError: RE2 does not accept it, or it is beyond the bounds.
    """
    if len(pattern) > bounds.max_length:
        raise RegexTooLargeError(f"it is longer than {bounds.max_length} characters")
    if sum(map(pattern.count, ("{", r"\p", r"\P"))) > MAX_EXPANSIONS:
        raise RegexTooLargeError(f"it has more than {MAX_EXPANSIONS} Unicode classes and repetition counts")
    try:
        steps = int(compiled(pattern, SMALLEST_BYTES + STEP_BYTES * bounds.max_steps).programsize)
    except RegexTooLargeError:
        raise RegexTooLargeError(f"it takes more than {bounds.max_steps} steps") from None
    if steps > bounds.max_steps:
        raise RegexTooLargeError(f"it takes {steps} steps, more than {bounds.max_steps}")
    return steps


def compiled(pattern: str, max_bytes: int) -> Any:
    """Compile an expression.

    Raises:
        RegexError: RE2 does not accept it, or needs more memory.
    """
    try:
        return re2.compile(pattern, re2_options(max_bytes))
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise (RegexTooLargeError if TOO_LARGE in text else RegexError)(text) from None
    except UnicodeEncodeError:
        raise RegexError("not Unicode text") from None
    finally:
        re2.purge()  # otherwise it keeps the last 128, of a megabyte each


class Verdict(NamedTuple):
    """The result of checking an expression."""

    steps: int
    """Of the compiled program; 0 if it was refused."""
    problem: str | None
    """The reason why it was refused."""
    too_large: bool = False


@lru_cache(maxsize=256)
def verdict(pattern: str, bounds: RegexBounds) -> Verdict:
    """Check an expression. The last ones are remembered, because a change of a subscription is checked often.

    It takes up to 10 ms, so a caller with many of them has to give way between them.
    """
    try:
        return Verdict(checked_steps(pattern, bounds), None)
    except RegexError as error:
        return Verdict(0, str(error), isinstance(error, RegexTooLargeError))
