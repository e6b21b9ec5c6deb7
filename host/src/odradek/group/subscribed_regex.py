"""Subscriptions by regular expression (KIP-848), matched on the broker with RE2, which takes linear time.

Kafka uses RE2/J and this host RE2 itself; the syntax is the same. The expression must match the whole topic
name.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field
from typing import Any

from odradek.bounds.bounded_regex import RegexBounds, RegexError, compiled_within
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

LONGEST_SHOWN = 100
STEP_WORK = 1_000
"""Steps of programs in one step of matching. A name of 200 characters takes up to 0.6 µs for each."""


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


@dataclass(slots=True, eq=False)
class SubscribedRegex:
    """An expression that members are subscribed to, and the topics that it matches now."""

    pattern: str
    program: Any
    topic_names: frozenset[str] = frozenset()

    pending: set[Deferred[frozenset[str]]] = field(default_factory=set)
    """Matches that are not complete."""

    def matching(
        self, names: Iterable[str], sees: Callable[[str], bool]
    ) -> Generator[None, None, frozenset[str]]:
        """Match topics in steps; return the names that match, among those that the client may see."""
        found = set()
        names_per_step = max(1, STEP_WORK // self.program.programsize)
        for number, name in enumerate(names, 1):
            if self.program.fullmatch(name) is not None and sees(name):
                found.add(name)
            if number % names_per_step == 0:
                yield
        return frozenset(found)

    def stop(self) -> None:
        """Give up matches that are not complete: no member needs them."""
        while self.pending:
            self.pending.pop().lost()
