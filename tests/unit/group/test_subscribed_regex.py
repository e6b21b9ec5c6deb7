from __future__ import annotations

from typing import Any

import pytest

from odradek.bounded_regex import RegexBounds
from odradek.group.subscribed_regex import SubscribedRegex
from odradek.group.subscribed_regex import compiled as compiled_within
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

BOUNDS = RegexBounds()


def compiled(pattern: str) -> Any:
    return compiled_within(pattern, BOUNDS)


def test_an_expression_matches_whole_topic_names() -> None:
    regex = SubscribedRegex("logs.*", compiled("logs.*"))

    changed = regex.resolve(["logs", "logs-a", "my-logs", "metrics"])

    assert changed
    assert regex.topic_names == {"logs", "logs-a"}


def test_matching_the_same_topics_again_changes_nothing() -> None:
    regex = SubscribedRegex("a|b", compiled("a|b"))
    regex.resolve(["a", "c"])

    changed = regex.resolve(["a", "c", "d"])

    assert not changed


@pytest.mark.parametrize(
    "pattern", ["(", "a{2,1}", "(?=ahead)", "(a)\\1", "((((a{99}){99}){99}){99})", "[z-a]", "*"]
)
def test_an_expression_that_re2_rejects_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError) as refusal:
        compiled(pattern)

    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert f"`{pattern}`" in str(refusal.value)


@pytest.mark.parametrize("pattern", ["a|b." * 2_501, "(.{0,30}){0,30}z", r"\pL" * 201, "a{1000}" * 201])
def test_an_expression_that_costs_too_much_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError) as refusal:
        compiled(pattern)

    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize(
    "pattern", [".*", r"\p{L}+[0-9]{1,100}", "|".join(f"orders-{i}" for i in range(800))]
)
def test_usual_expressions_are_accepted(pattern: str) -> None:
    assert compiled(pattern).programsize <= BOUNDS.max_steps


def test_an_expression_that_is_slow_with_backtracking_takes_linear_time() -> None:
    regex = SubscribedRegex("(a*)*b", compiled("(a*)*b"))

    regex.resolve(["a" * 249] * 100)

    assert regex.topic_names == frozenset()
