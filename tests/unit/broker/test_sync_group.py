"""The SyncGroup handler."""

from __future__ import annotations

from odradek.broker.handlers.sync_group import sync_group
from odradek.deferred import Deferred
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.sync_group import SyncGroupRequest
from support.group_client import DELAY_MS, GroupClient


def test_a_refusal_is_answered() -> None:
    client = GroupClient()

    (answer,) = client.post(SyncGroupRequest(group_id="g", member_id="m"))

    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_stopping_host_answers_waiting_syncs() -> None:
    client = GroupClient()
    parked = [client.post(client.joining(member_id=client.member_id())) for _ in range(2)]
    client.clock.advance(2 * DELAY_MS)
    follower = parked[1][0]
    request = SyncGroupRequest(group_id="g", generation_id=1, member_id=follower.member_id)
    context = RequestContext(client.connection, 14, 5, 1, "test", client.clock.now_ms())
    deferred = sync_group(request, context, client.broker)
    assert isinstance(deferred, Deferred)
    assert deferred.hurry is not None

    deferred.hurry()

    assert deferred.outcome.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
