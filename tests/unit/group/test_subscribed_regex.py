from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from odradek.bounds.bounded_regex import RegexBounds
from odradek.group.subscribed_regex import SubscribedRegex
from odradek.group.subscribed_regex import compiled as compiled_within
from odradek.waiting.steps import result_of, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.consumer_groups import ConsumerGroups

BOUNDS = RegexBounds()


def compiled(pattern: str) -> Any:
    return compiled_within(pattern, BOUNDS)


def matched(pattern: str, *names: str) -> frozenset[str]:
    return result_of(SubscribedRegex(pattern, compiled(pattern)).matching(names, lambda _: True))


def test_an_expression_matches_whole_topic_names() -> None:
    assert matched("logs.*", "logs", "logs-a", "my-logs", "metrics") == {"logs", "logs-a"}


@pytest.mark.parametrize(
    "pattern", ["(", "a{2,1}", "(?=ahead)", "(a)\\1", "((((a{99}){99}){99}){99})", "[z-a]", "*"]
)
def test_an_expression_that_re2_rejects_is_refused(pattern: str) -> None:
    with pytest.raises(ApiError) as refusal:
        compiled(pattern)

    assert refusal.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert f"`{pattern}`" in str(refusal.value)


@pytest.mark.parametrize("pattern", ["a|b." * 2_501, "(.{0,30}){0,30}z", r"\pL" * 101, "a{1000}" * 101])
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
    assert matched("(a*)*b", *("a" * length for length in range(149, 250))) == frozenset()


@pytest.mark.parametrize(("pattern", "steps"), [("a.*", 1), ("|".join(f"a{{{n}}}b" for n in range(60)), 100)])
def test_an_expensive_expression_matches_fewer_topics_in_a_step(pattern: str, steps: int) -> None:
    regex = SubscribedRegex(pattern, compiled(pattern))

    assert run_steps(regex.matching(["a"] * 100, lambda _: True)) == steps


def in_steps(regex: str, topics: int) -> ConsumerGroups:
    """A group whose only member subscribes to a pattern; a turn of its loop is not enough to match."""
    groups = ConsumerGroups(in_steps=True)
    for number in range(topics):
        groups.topics.put(f"a{number:04}", 1)
    groups.join("m1", regex=regex)
    return groups


def stay(groups: ConsumerGroups) -> int:
    """The next heartbeat; return the number of assigned partitions."""
    groups.beat("m1", groups.group.members["m1"].member_epoch)
    return len(groups.group.members["m1"].assigned)


def test_many_topics_are_matched_in_the_background() -> None:
    groups = in_steps("a.*", topics=2_000)
    at_first = stay(groups)
    groups.clock.advance(0)

    later = stay(groups)
    groups.clock.advance(0)

    assert (at_first, later, stay(groups)) == (0, 0, 2_000)


def test_a_topic_that_is_deleted_meanwhile_is_not_assigned() -> None:
    groups = in_steps("a.*", topics=2_000)
    groups.topics.delete("a0003")
    groups.topics.put("a9999", 1)
    groups.topics_changed()

    for _ in range(4):
        stay(groups)
        groups.clock.advance(0)

    (regex,) = groups.group.subscriptions.regexes.values()
    assert regex.topic_names == frozenset(groups.topics.ids)
    assert stay(groups) == 2_000


def test_matching_stops_when_no_member_needs_it() -> None:
    groups = in_steps("a.*", topics=2_000)
    (regex,) = groups.group.subscriptions.regexes.values()
    (work,) = regex.pending

    groups.beat("m1", -1)
    groups.clock.advance(0)

    assert (groups.group.subscriptions.regexes, work.done, regex.pending) == ({}, False, set())


@dataclass
class CountingProgram:
    """Counts the names that are matched."""

    program: Any
    names: list[str] = field(default_factory=list)

    @property
    def programsize(self) -> int:
        size: int = self.program.programsize
        return size

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


def test_an_expression_matches_only_topics_that_the_client_may_see() -> None:
    found = result_of(
        SubscribedRegex("a.*", compiled("a.*")).matching(["ab", "ac", "b"], lambda name: name != "ac")
    )

    assert found == {"ab"}
