from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.bounded_regex import RegexBounds
from odradek.group.subscribed_regex import SubscribedRegex
from odradek.group.subscribed_regex import compiled as compiled_within
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.consumer_groups import ConsumerGroups

BOUNDS = RegexBounds()


def compiled(pattern: str) -> Any:
    return compiled_within(pattern, BOUNDS)


def test_an_expression_matches_whole_topic_names() -> None:
    regex = SubscribedRegex("logs.*", compiled("logs.*"))
    names = {"logs", "logs-a", "my-logs", "metrics"}

    regex.update(names, names)

    assert regex.topic_names == {"logs", "logs-a"}


def test_deleted_topics_match_no_longer() -> None:
    regex = SubscribedRegex("a|b", compiled("a|b"))
    regex.update({"a", "c"}, {"a", "c"})

    regex.update({"b", "d"}, {"b", "c", "d"})

    assert regex.topic_names == {"b"}


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

    names = {"a" * length for length in range(149, 250)}

    regex.update(names, names)

    assert regex.topic_names == frozenset()


@dataclass
class CountingProgram:
    """Counts the names that are matched."""

    program: Any
    names: list[str] = field(default_factory=list)

    def fullmatch(self, name: str) -> object:
        self.names.append(name)
        return self.program.fullmatch(name)


def test_a_change_of_topics_only_matches_the_new_ones() -> None:
    groups = ConsumerGroups()
    groups.topics.put("a-1", 1)
    groups.topics.put("b-1", 1)
    epoch = groups.join("m1", regex="a.*").member_epoch
    groups.topics_changed()
    epoch = groups.beat("m1", epoch).member_epoch
    (regex,) = groups.group.subscriptions.regexes.values()
    regex.program = counting = CountingProgram(regex.program)

    groups.topics.put("a-2", 1)
    groups.topics.put("c-1", 1)
    groups.topics.delete("a-1")
    groups.topics_changed()
    groups.beat("m1", epoch)

    assert sorted(counting.names) == ["a-2", "c-1"]
    assert regex.topic_names == {"a-2"}
