"""The Heartbeat handler."""

from __future__ import annotations

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest
from support.group_client import GroupClient


def test_a_refusal_is_answered() -> None:
    client = GroupClient()

    (answer,) = client.post(HeartbeatRequest(group_id="g", member_id="m"))

    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
