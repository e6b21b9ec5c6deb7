from __future__ import annotations

from odradek.group.consumer_member import ConsumerMember
from odradek.group.target_assignment import TargetAssignment, preferred_assignor


def voters(*names: str | None) -> list[ConsumerMember]:
    return [ConsumerMember(str(number), server_assignor=name) for number, name in enumerate(names)]


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    name = preferred_assignor(voters("uniform", "range", "range"), "uniform")

    assert name == "range"


def test_of_two_that_as_many_ask_for_it_is_always_the_same() -> None:
    names = {
        preferred_assignor(voters("uniform", "range"), "x"),
        preferred_assignor(voters("range", "uniform"), "x"),
    }

    assert names == {"range"}


def test_members_that_ask_for_none_get_the_default() -> None:
    name = preferred_assignor(voters(None, None), "uniform")

    assert name == "uniform"


def test_a_static_member_that_comes_back_has_the_target_it_had() -> None:
    target = TargetAssignment(3, {"old": {(b"t", 1)}})

    target.replace("old", "new")

    assert target.of("new") == {(b"t", 1)}
    assert target.of("old") == frozenset()
