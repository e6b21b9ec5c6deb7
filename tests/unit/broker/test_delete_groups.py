"""DeleteGroups: one answer per group."""

from __future__ import annotations

import pytest

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


@pytest.mark.parametrize("version", [2, 3])
def test_only_a_group_of_the_host_itself_has_an_error_message(version: int) -> None:
    client = GroupClient()
    client.stable_group("full")
    client.broker.groups.make_simple_group("empty")
    client.broker.groups.make_simple_group("own")
    client.broker.groups.offsets.owned["own"] = lambda _offsets: None
    names = ["full", "empty", "missing", "own"]

    (answer,) = client.post(DeleteGroupsRequest(groups_names=names), version)

    messages = {result.group_id: result.error_message for result in answer.results}
    why = "The host itself is the consumer in group own." if version >= 3 else None
    assert messages == {"full": None, "empty": None, "missing": None, "own": why}
    assert answer.results[-1].error_code == ErrorCode.NON_EMPTY_GROUP
