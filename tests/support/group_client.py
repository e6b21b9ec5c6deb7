"""A client of group members, whose requests may wait."""

from __future__ import annotations

from typing import Any

from odradek.client.connection import answer_type
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.codec import decode, encode
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from support.broker import BrokerClient

SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
"""The default of ``group.initial.rebalance.delay.ms``."""


class GroupClient(BrokerClient):
    """Posts requests and collects their answers when they come."""

    @property
    def clock(self) -> MockClock:
        clock = self.broker.clock
        assert isinstance(clock, MockClock)
        return clock

    def post(self, request: Any, version: int | None = None) -> list[Any]:
        """A list that will contain the answer."""
        chosen: int = request.VERSIONS.last if version is None else version
        header = RequestHeader(request.API_KEY, chosen, 1, self.client_id)
        frame = request_header(header, flexible_request_header(request, chosen)) + encode(request, chosen)
        answer = self.dispatcher.answer(frame, 0, self.connection)
        answers: list[Any] = []

        def read(written: bytes) -> None:
            _, start = read_response_header(written, 4, flexible_response_header(request, chosen))
            answers.append(decode(answer_type(type(request)), chosen, written, start))

        if isinstance(answer, Deferred):
            answer.when_done(read)
        elif isinstance(answer, bytes):
            read(answer)
        return answers

    def joining(
        self, group_id: str = "g", member_id: str = "", metadata: bytes = b"m", **fields: Any
    ) -> JoinGroupRequest:
        """A valid JoinGroup, except for ``fields``."""
        values: dict[str, Any] = {
            "group_id": group_id,
            "member_id": member_id,
            "session_timeout_ms": SESSION_MS,
            "rebalance_timeout_ms": REBALANCE_MS,
            "protocol_type": "consumer",
            "protocols": [JoinGroupRequestProtocol(name="range", metadata=metadata)],
        }
        return JoinGroupRequest(**(values | fields))

    def member_id(self, group_id: str = "g", **fields: Any) -> str:
        """An assigned member id that is not yet used."""
        (answer,) = self.post(self.joining(group_id, **fields))
        member_id: str = answer.member_id
        return member_id

    def stable_group(self, group_id: str = "g", members: int = 1, **fields: Any) -> list[JoinGroupResponse]:
        """Members of a new group, the leader first; each assignment is the member's number in bytes."""
        ids = [self.member_id(group_id) for _ in range(members)]
        parked = [self.post(self.joining(group_id, member_id, **fields)) for member_id in ids]
        self.clock.advance(2 * DELAY_MS)
        joined = [answers[0] for answers in parked]
        assignments = [
            SyncGroupRequestAssignment(member_id=member.member_id, assignment=b"%d" % number)
            for number, member in enumerate(joined)
        ]
        for member in joined:
            self.sync(member, assignments if member.leader == member.member_id else [], group_id)
        return joined

    def sync(
        self,
        member: JoinGroupResponse,
        assignments: list[SyncGroupRequestAssignment],
        group_id: str = "g",
    ) -> list[SyncGroupResponse]:
        request = SyncGroupRequest(
            group_id=group_id,
            generation_id=member.generation_id,
            member_id=member.member_id,
            protocol_type=member.protocol_type,
            protocol_name=member.protocol_name,
            assignments=assignments,
        )
        return self.post(request)
