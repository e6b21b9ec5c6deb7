"""ListGroups: both kinds of groups, and filters."""

from __future__ import annotations

import pytest

from odradek.wire.messages.list_groups import ListGroupsRequest
from support.group_client import GroupClient


@pytest.fixture
def client() -> GroupClient:
    """Groups ``stable`` and ``empty`` of classic members, and ``modern`` of the other protocol."""
    client = GroupClient()
    client.stable_group("stable")
    client.broker.groups.make_simple_group("empty")
    client.broker.groups.put(client.broker.groups.consumer_group("modern", 1))
    return client


def listed(client: GroupClient, states: list[str], types: list[str]) -> list[str]:
    (answer,) = client.post(ListGroupsRequest(states_filter=states, types_filter=types))
    return sorted(group.group_id for group in answer.groups)


@pytest.mark.parametrize(
    ("states", "types", "groups"),
    [
        ([], [], ["empty", "modern", "stable"]),
        (["Stable"], [], ["stable"]),
        (["sTABLE"], [], ["stable"]),
        (["Empty", "Stable"], [], ["empty", "modern", "stable"]),
        ([], ["classic"], ["empty", "stable"]),
        ([], ["Consumer"], ["modern"]),
        (["Empty"], ["classic"], ["empty"]),
        (["NoSuchState"], [], []),
        ([], ["share"], []),
    ],
)
def test_filters_select_groups(
    client: GroupClient, states: list[str], types: list[str], groups: list[str]
) -> None:
    found = listed(client, states, types)

    assert found == groups
