"""Subscriptions by regular expression (KIP-848): RE2 on the broker, so that no expression takes more than
linear time.

Kafka uses RE2/J, this uses RE2 itself; the syntax is the same. A topic is meant when the expression matches
all of its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import re2

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

MAX_PROGRAM_BYTES = 1 << 20
"""What a compiled expression may take; RE2 refuses a larger one."""
MAX_PATTERN_LENGTH = 10_000
"""RE2 takes its time over a pattern of megabytes before it refuses it, and fills standard error meanwhile."""
MAX_PROGRAM_STEPS = 2_000
"""Of a compiled expression. Matching a name takes time in proportion to it; ``.*`` has 12."""


def options() -> Any:
    """Errors are raised, not printed."""
    chosen = re2.Options()
    chosen.log_errors = False
    chosen.max_mem = MAX_PROGRAM_BYTES
    return chosen


def compiled(pattern: str) -> Any:
    """The expression, ready to match.

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
    """An expression that members are subscribed to, and the topics that it means now."""

    pattern: str
    program: Any
    topic_names: frozenset[str] = frozenset()

    def resolve(self, names: Iterable[str]) -> bool:
        """Look at all topics again; whether the answer is another one."""
        before = self.topic_names
        self.topic_names = frozenset(name for name in names if self.program.fullmatch(name) is not None)
        return before != self.topic_names
