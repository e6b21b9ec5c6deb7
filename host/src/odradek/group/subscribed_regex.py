"""Subscriptions by regular expression (KIP-848), matched on the broker with RE2, which takes linear time.

Kafka uses RE2/J and this host RE2 itself; the syntax is the same. The expression must match the whole topic
name.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from odradek.bounded_regex import RegexBounds, RegexError, compiled_within
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

LONGEST_SHOWN = 100


def compiled(pattern: str, bounds: RegexBounds) -> Any:
    """Compile an expression.

    Raises:
        ApiError: INVALID_REGULAR_EXPRESSION.
    """
    try:
        return compiled_within(pattern, bounds)
    except RegexError as reason:
        shown = pattern if len(pattern) <= LONGEST_SHOWN else f"{pattern[:LONGEST_SHOWN]}..."
        raise ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{shown}` is not a valid regular expression: {reason}.",
        ) from None


@dataclass(slots=True)
class SubscribedRegex:
    """An expression that members are subscribed to, and the topics that it matches now."""

    pattern: str
    program: Any
    topic_names: frozenset[str] = frozenset()

    def update(self, added: Iterable[str], present: AbstractSet[str]) -> None:
        """Match new topics.

        Args:
            added: The names of topics that were not matched before.
            present: The names of all topics.
        """
        matched = (name for name in added if self.program.fullmatch(name) is not None)
        self.topic_names = (self.topic_names & present).union(matched)
