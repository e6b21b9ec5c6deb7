"""Classic groups on a mock clock: no broker, no bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Generic, TypeVar

from odradek.group import classic_protocol
from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_join import Joiner
from odradek.group.group_config import GroupConfig
from odradek.group.group_coordinator import GroupCoordinator
from odradek.metadata.offset_store import SqliteOffsetStore
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from odradek.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from odradek.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from support.error_codes import code_of

R = TypeVar("R")
SESSION_MS = 10_000
REBALANCE_MS = 60_000
DELAY_MS = 3_000
"""The default of ``group.initial.rebalance.delay.ms``."""
RANGE = (("range", b"m"),)
Protocols = tuple[tuple[str, bytes], ...]


@dataclass(slots=True)
class FixedTopics:
    """Topics by name: id and number of partitions."""

    known: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    def topic_id(self, name: str) -> bytes | None:
        return self.known[name][0] if name in self.known else None

    def topic_name(self, topic_id: bytes) -> str | None:
        return next((name for name, (known, _) in self.known.items() if known == topic_id), None)

    def partition_count(self, name: str) -> int:
        return self.known[name][1] if name in self.known else 0

    def matchable_names(self) -> Iterable[str]:
        return self.known


class Parked(Generic[R]):
    """A request and, later, its answer."""

    def __init__(self) -> None:
        self.answers: list[R] = []

    @property
    def waits(self) -> bool:
        return not self.answers

    @property
    def answer(self) -> R:
        (only,) = self.answers
        return only

    def take(self, answer: R | Deferred[R]) -> None:
        """Take an answer, at once or when it is ready."""
        take(answer, self.answers.append)


def take(answer: R | Deferred[R], receive: Callable[[R], None]) -> None:
    """Call back with an answer, at once or when it is ready."""
    if isinstance(answer, Deferred):
        answer.when_done(receive)
    else:
        receive(answer)


Joined = Parked[JoinGroupResponse]
Synced = Parked[SyncGroupResponse]


class GroupHost:
    """One coordinator, and members that the test directs, in group ``g`` by default."""

    def __init__(self, config: GroupConfig | None = None, store: SqliteOffsetStore | None = None) -> None:
        uuids = count(1)
        self.clock = MockClock()
        self.topics = FixedTopics({"t": (b"t" * 16, 4), "u": (b"u" * 16, 1)})
        self.store = store or SqliteOffsetStore(":memory:")
        self.groups = GroupCoordinator(
            config=config or GroupConfig(),
            clock=self.clock,
            timer=self.clock.timer,
            random_uuid=lambda: next(uuids).to_bytes(16),
            store=self.store,
            topics=self.topics,
        )

    @property
    def group(self) -> ClassicGroup:
        group = self.groups.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group

    def join(
        self,
        member_id: str = "",
        *,
        group_id: str = "g",
        instance_id: str | None = None,
        version: int = 9,
        protocols: Protocols = RANGE,
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
    ) -> Joined:
        request = JoinGroupRequest(
            group_id=group_id,
            member_id=member_id,
            group_instance_id=instance_id,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        )
        parked = Joined()
        joiner = Joiner("client", "/127.0.0.1", version)
        try:
            parked.take(classic_protocol.join(self.groups, request, joiner))
        except ApiError as error:
            parked.answers.append(JoinGroupResponse(error_code=error.code, member_id=member_id))
        return parked

    def pending_id(self) -> str:
        """An assigned member id that is not yet used."""
        answer = self.join().answer
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        return answer.member_id

    def join_new(self, **options: object) -> Joined:
        """Both steps of a new dynamic member; the second one waits."""
        return self.join(self.pending_id(), **options)  # type: ignore[arg-type]  # as `join` takes them

    def sync(
        self,
        member: JoinGroupResponse,
        assignments: dict[str, bytes] | None = None,
        **fields: object,
    ) -> Synced:
        values: dict[str, object] = {
            "group_id": "g",
            "generation_id": member.generation_id,
            "member_id": member.member_id,
            "assignments": [
                SyncGroupRequestAssignment(member_id=member_id, assignment=assignment)
                for member_id, assignment in (assignments or {}).items()
            ],
        }
        parked = Synced()
        try:
            request = SyncGroupRequest(**(values | fields))  # type: ignore[arg-type]  # fields by name
            parked.take(classic_protocol.sync(self.groups, request))
        except ApiError as error:
            parked.answers.append(SyncGroupResponse(error_code=error.code))
        return parked

    def heartbeat(
        self, member_id: str, generation: int = 1, instance_id: str | None = None, group_id: str = "g"
    ) -> ErrorCode:
        request = HeartbeatRequest(
            group_id=group_id, member_id=member_id, generation_id=generation, group_instance_id=instance_id
        )
        return code_of(lambda: classic_protocol.heartbeat(self.groups, request))

    def leave(self, *members: tuple[str, str | None], group_id: str = "g") -> list[int]:
        """LeaveGroup of members, by member id and instance id; return the error code of each."""
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[
                MemberIdentity(member_id=name, group_instance_id=instance) for name, instance in members
            ],
        )
        return [answer.error_code for answer in classic_protocol.leave(self.groups, request)]

    def completing(self, members: int = 1, **options: object) -> list[JoinGroupResponse]:
        """Members of a generation that waits for its leader's assignment; the leader first."""
        parked = [self.join_new(**options) for _ in range(members)]
        self.clock.advance(2 * DELAY_MS)
        return [joined.answer for joined in parked]

    def stable(self, members: int = 1, **options: object) -> list[JoinGroupResponse]:
        """Members of a stable generation, the leader first. Each assignment is the member's position in
        bytes.
        """
        joined = self.completing(members, **options)
        self.sync_all(joined)
        return joined

    def sync_all(self, joined: list[JoinGroupResponse]) -> None:
        """Every member sends SyncGroup, the leader last."""
        assignments = {member.member_id: b"%d" % place for place, member in enumerate(joined)}
        for member in joined:
            if member.member_id != member.leader:
                self.sync(member)
        for member in joined:
            if member.member_id == member.leader:
                self.sync(member, assignments)

    def static(self, *instance_ids: str, version: int = 9, **options: object) -> list[JoinGroupResponse]:
        """Static members of a stable generation, the leader first."""
        parked = [self.join(instance_id=name, version=version, **options) for name in instance_ids]  # type: ignore[arg-type]  # as `join` takes them
        self.clock.advance(2 * DELAY_MS)
        joined = [one.answer for one in parked]
        self.sync_all(joined)
        return joined
