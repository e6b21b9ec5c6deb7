"""The SyncGroup handler."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.handlers.sync_group import sync_group
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sync_group import SyncGroupRequest
from support.group_client import DELAY_MS, GroupClient


def test_a_refusal_is_answered() -> None:
    client = GroupClient()

    request = SyncGroupRequest(group_id="g", member_id="m", protocol_type="consumer", protocol_name="range")

    (answer,) = client.post(request)

    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("group_id", ["g", ""])
@pytest.mark.parametrize("fields", [{}, {"protocol_type": "consumer"}, {"protocol_name": "range"}])
def test_from_v5_on_the_protocol_is_needed_before_anything_else(
    group_id: str, fields: dict[str, Any]
) -> None:
    client = GroupClient()

    (answer,) = client.post(SyncGroupRequest(group_id=group_id, member_id="m", **fields), 5)

    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_stopping_host_answers_waiting_syncs() -> None:
    client = GroupClient()
    parked = [client.post(client.joining(member_id=client.member_id())) for _ in range(2)]
    client.clock.advance(2 * DELAY_MS)
    follower = parked[1][0]
    request = SyncGroupRequest(
        group_id="g",
        generation_id=1,
        member_id=follower.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    context = RequestContext(client.connection, 14, 5, 1, "test", client.clock.now_ms())
    deferred = sync_group(request, context, client.broker)
    assert isinstance(deferred, Deferred)
    assert deferred.hurry is not None

    deferred.hurry()

    assert deferred.outcome.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
