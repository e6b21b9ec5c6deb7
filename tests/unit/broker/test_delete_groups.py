"""DeleteGroups: one answer per group."""

from __future__ import annotations

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from support.group_client import GroupClient


def test_each_group_has_its_own_answer() -> None:
    client = GroupClient()
    client.stable_group("full")
    client.broker.groups.make_simple_group("empty")
    names = ["full", "empty", "missing", "empty"]

    (answer,) = client.post(DeleteGroupsRequest(groups_names=names))

    assert {result.group_id: result.error_code for result in answer.results} == {
        "full": ErrorCode.NON_EMPTY_GROUP,
        "empty": ErrorCode.NONE,
        "missing": ErrorCode.GROUP_ID_NOT_FOUND,
    }
    assert len(answer.results) == 3
    assert list(client.broker.groups.groups) == ["full"]
