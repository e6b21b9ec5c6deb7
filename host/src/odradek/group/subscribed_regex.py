"""Subscriptions by regular expression (KIP-848), matched on the broker with RE2, which takes linear time.

Kafka uses RE2/J and this host RE2 itself; the syntax is the same. The expression must match the whole topic
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import re2

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

MAX_PROGRAM_BYTES = 1 << 20
"""The most memory of a compiled expression; RE2 refuses a larger one."""
MAX_PATTERN_LENGTH = 10_000
"""The longest pattern. RE2 takes long to refuse a pattern of megabytes, and fills standard error
meanwhile.
"""
MAX_PROGRAM_STEPS = 2_000
"""The most steps of a compiled expression, which matching time is proportional to; ``.*`` has 12."""


def options() -> Any:
    """Options that bound memory and make RE2 raise errors instead of printing them."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = MAX_PROGRAM_BYTES
    return chosen


def compiled(pattern: str) -> Any:
    """Compile an expression.

    Raises:
        ApiError: INVALID_REGULAR_EXPRESSION.
    """
    if len(pattern) > MAX_PATTERN_LENGTH:
        raise invalid(f"{pattern[:100]}...", f"it is longer than {MAX_PATTERN_LENGTH} characters")
    try:
        program = re2.compile(pattern, options())
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise invalid(
            pattern, reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None
    if program.programsize > MAX_PROGRAM_STEPS:
        raise invalid(pattern, f"it takes more than {MAX_PROGRAM_STEPS} steps")
    return program


def invalid(pattern: str, reason: str) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REGULAR_EXPRESSION,
        f"SubscribedTopicRegex {pattern!r} is not a valid regular expression: {reason}",
    )


@dataclass(slots=True)
class SubscribedRegex:
    """An expression that members are subscribed to, and the topics that it matches now."""

    pattern: str
    program: Any
    topic_names: frozenset[str] = frozenset()

    def resolve(self, names: Iterable[str]) -> bool:
        """Match all topics again; return whether the result has changed."""
        before = self.topic_names
        self.topic_names = frozenset(name for name in names if self.program.fullmatch(name) is not None)
        return before != self.topic_names
