from __future__ import annotations

from odradek.group.consumer_member import ConsumerMember
from odradek.group.target_assignment import TargetAssignment, preferred_assignor


def voters(*names: str | None) -> list[ConsumerMember]:
    return [ConsumerMember(str(number), server_assignor=name) for number, name in enumerate(names)]


def test_the_assignor_that_most_members_ask_for_is_used() -> None:
    name = preferred_assignor(voters("uniform", "range", "range"), "uniform")

    assert name == "range"


def test_a_tie_between_assignors_is_always_resolved_the_same_way() -> None:
    names = {
        preferred_assignor(voters("uniform", "range"), "x"),
        preferred_assignor(voters("range", "uniform"), "x"),
    }

    assert names == {"range"}


def test_members_that_ask_for_no_assignor_get_the_default() -> None:
    name = preferred_assignor(voters(None, None), "uniform")

    assert name == "uniform"


def test_a_returning_static_member_keeps_its_target() -> None:
    target = TargetAssignment(3, {"old": {(b"t", 1)}})

    target.replace("old", "new")

    assert target.of("new") == {(b"t", 1)}
    assert target.of("old") == frozenset()
