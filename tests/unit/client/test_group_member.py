"""The assignments that a member makes when it leads its group: those of Kafka's RangeAssignor."""

from __future__ import annotations

import pytest

from odradek.client.group_member import PREFIX, VERSION, assignments, prefixed
from odradek.wire.codec import decode
from odradek.wire.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.wire.messages.join_group import JoinGroupResponseMember


def member(name: str, *topics: str) -> JoinGroupResponseMember:
    metadata = prefixed(ConsumerProtocolSubscription(topics=list(topics)))
    return JoinGroupResponseMember(member_id=name, metadata=metadata)


def shares(members: list[JoinGroupResponseMember], partitions: int) -> dict[str, list[int]]:
    found = {}
    for name, data in assignments("fleet", members, partitions).items():
        read = decode(ConsumerProtocolAssignment, VERSION, data, PREFIX.size)
        found[name] = [index for each in read.assigned_partitions for index in each.partitions]
    return found


@pytest.mark.parametrize(
    ("names", "partitions", "expected"),
    [
        ("a", 3, {"a": [0, 1, 2]}),
        ("ba", 5, {"a": [0, 1, 2], "b": [3, 4]}),
        ("abc", 2, {"a": [0], "b": [1], "c": []}),
        ("ab", 0, {"a": [], "b": []}),
    ],
    ids=["alone", "first gets more", "more members than partitions", "no partitions"],
)
def test_members_get_consecutive_partitions(
    names: str, partitions: int, expected: dict[str, list[int]]
) -> None:
    assert shares([member(name, "fleet") for name in names], partitions) == expected


def test_members_that_read_something_else_get_nothing() -> None:
    broken = JoinGroupResponseMember(member_id="c", metadata=b"\0")

    found = shares([member("a", "other"), member("b", "other", "fleet"), broken], 2)

    assert found == {"a": [], "b": [0, 1], "c": []}
