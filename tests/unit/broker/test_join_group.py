"""The JoinGroup handler: refusals, lost connections, a stopping host."""

from __future__ import annotations

import pytest

from odradek.broker.handlers.join_group import join_group
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from support.group_client import DELAY_MS, GroupClient


def parked(client: GroupClient, member_id: str) -> Deferred[JoinGroupResponse]:
    """A join that waits for the initial delay."""
    context = RequestContext(client.connection, 11, 9, 1, "test", client.clock.now_ms())
    answer = join_group(client.joining(member_id=member_id), context, client.broker)
    assert isinstance(answer, Deferred)
    return answer


def test_a_refusal_returns_the_clients_member_id() -> None:
    client = GroupClient()

    (answer,) = client.post(client.joining(member_id="mine"))

    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "mine")


@pytest.mark.parametrize("version", range(10))
def test_a_refusal_has_no_protocol_name(version: int) -> None:
    client = GroupClient()

    (answer,) = client.post(client.joining(member_id="mine"), version)

    assert answer.protocol_name == (None if version >= 7 else "")


def test_a_late_refusal_has_no_protocol_name() -> None:
    client = GroupClient()
    member_id = client.member_id()
    first = parked(client, member_id)

    parked(client, member_id)

    outcome = first.outcome
    assert (outcome.error_code, outcome.protocol_name) == (ErrorCode.REBALANCE_IN_PROGRESS, None)


def test_a_member_id_starts_with_the_client_id() -> None:
    client = GroupClient(client_id="reader")

    assert client.member_id().startswith("reader-")


def test_a_client_without_a_client_id_gets_a_member_id_too() -> None:
    client = GroupClient(client_id=None)

    (answer,) = client.post(client.joining())

    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED


def test_a_client_that_disconnects_while_waiting_stays_a_member_until_its_session_ends() -> None:
    client = GroupClient()
    deferred = parked(client, client.member_id())

    deferred.lost()
    client.clock.advance(DELAY_MS)

    assert deferred.done
    assert client.broker.groups.group("g").state_name == "CompletingRebalance"


def test_a_stopping_host_answers_waiting_joins() -> None:
    client = GroupClient()
    deferred = parked(client, client.member_id())
    assert deferred.hurry is not None

    deferred.hurry()
    client.clock.advance(DELAY_MS)

    assert deferred.outcome.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
