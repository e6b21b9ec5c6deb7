"""Random runs of a classic group: joins, timeouts, lost answers, leaves, returning static members.

At all times there is one generation, every waiting request is answered once, and nothing is kept for removed
members.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.group.classic_group import ClassicGroup
from odradek.group.classic_state import ClassicState
from odradek.group.group_config import NEW_MEMBER_JOIN_TIMEOUT_MS
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.join_group import JoinGroupResponse
from support.classic_groups import REBALANCE_MS, SESSION_MS, GroupHost, Joined, Synced
from support.examples import examples
from support.member_sizes import check_totals

ACTIONS = ("beat", "beat", "beat", "beat", "retry", "vanish", "leave", "change", "pass")
LOST_PLACE = (
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.FENCED_INSTANCE_ID,
)


@dataclass(slots=True, eq=False)
class Client:
    """A client that follows the protocol: it joins, syncs, and then sends heartbeats."""

    host: GroupHost
    version: int
    instance_id: str | None = None
    metadata: bytes = b"m"
    member_id: str = ""
    place: JoinGroupResponse | None = None
    """Its place in a generation."""
    joining: Joined | None = None
    syncing: Synced | None = None
    assignment: bytes | None = None
    requests: list[Joined | Synced] = field(default_factory=list)
    """All requests that it sent and had to wait for."""

    def beat(self) -> None:
        """Take the answers that came, then take the next step."""
        self.read()
        if self.joining is None and self.syncing is None:
            self.send()
        self.read()

    def send(self) -> None:
        if self.place is None:
            self.join()
        elif self.assignment is None:
            self.sync(self.place)
        elif self.heartbeat(self.place) != ErrorCode.NONE:
            self.place = self.assignment = None

    def join(self) -> None:
        self.joining = self.host.join(
            self.member_id,
            instance_id=self.instance_id,
            version=self.version,
            protocols=(("range", self.metadata),),
        )
        self.requests.append(self.joining)

    def sync(self, place: JoinGroupResponse) -> None:
        shares = {member.member_id: member.member_id.encode() for member in place.members}
        self.syncing = self.host.sync(place, shares, group_instance_id=self.instance_id)
        self.requests.append(self.syncing)

    def heartbeat(self, place: JoinGroupResponse) -> ErrorCode:
        code = self.host.heartbeat(place.member_id, place.generation_id, self.instance_id)
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        return code

    def read(self) -> None:
        """Take the available answers."""
        if self.joining is not None and not self.joining.waits:
            self.joined(self.joining.answer)
            self.joining = None
        if self.syncing is not None and not self.syncing.waits:
            self.synced(ErrorCode(self.syncing.answer.error_code), self.syncing.answer.assignment)
            self.syncing = None

    def joined(self, answer: JoinGroupResponse) -> None:
        code = ErrorCode(answer.error_code)
        if code == ErrorCode.NONE:
            self.member_id, self.place, self.assignment = answer.member_id, answer, None
        elif code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code != ErrorCode.REBALANCE_IN_PROGRESS:
            assert code in LOST_PLACE, code
            self.member_id = ""

    def synced(self, code: ErrorCode, assignment: bytes) -> None:
        if code == ErrorCode.NONE:
            self.assignment = assignment
            return
        assert code in LOST_PLACE, code
        self.place = None
        if code != ErrorCode.REBALANCE_IN_PROGRESS:
            self.member_id = ""

    def retry(self) -> None:
        """Lose its connection: abandon waiting requests, and forget unread answers."""
        self.joining = self.syncing = None

    def change(self) -> None:
        """Change the subscription."""
        self.metadata += b"m"
        if self.joining is None:
            self.place = self.assignment = None

    def leave(self) -> None:
        """Leave; if static, an operator removes it by its instance id."""
        if "g" in self.host.groups.groups and self.member_id:
            self.host.leave(("", self.instance_id) if self.instance_id else (self.member_id, None))
        self.retry()
        self.member_id, self.place, self.assignment = "", None, None


@dataclass(slots=True)
class Life:
    """A group and all its clients."""

    host: GroupHost
    clients: list[Client]
    gone: list[Client] = field(default_factory=list)
    generation: int = 0
    leaders: dict[int, str] = field(default_factory=dict)
    """The leader of each generation."""

    def act(self, action: str, number: int, elapsed_ms: int) -> None:
        """Take one random step."""
        client = self.clients[number % len(self.clients)]
        if action == "pass":
            self.host.clock.advance(elapsed_ms)
        elif action == "vanish":
            self.gone.append(client)
            self.clients[number % len(self.clients)] = Client(self.host, client.version, client.instance_id)
        else:
            getattr(client, action)()
        self.check()

    def check(self) -> None:
        """Check what must always be true."""
        group = self.host.groups.groups.get("g")
        assert not self.host.groups.outbox.due
        check_totals(self.host.groups)
        if isinstance(group, ClassicGroup):
            check_members(group)
            check_state(group)
            assert group.generation >= self.generation
            self.generation = group.generation
            assert len(self.host.clock.timer) <= len(group.members) + len(group.pending_members) + 2
        for client in self.clients:
            self.check_leader(client)

    def check_leader(self, client: Client) -> None:
        """One leader per generation: two would split the group."""
        place = client.place
        if place is not None and place.members and not place.skip_assignment:
            assert self.leaders.setdefault(place.generation_id, place.member_id) == place.member_id

    def settle(self) -> None:
        """With no more losses, every client gets a place in the same generation."""
        for _ in range(40):
            for client in self.clients:
                client.beat()
            self.host.clock.advance(SESSION_MS // 4)
            self.check()
            if self.is_settled():
                return
        pytest.fail(f"{self.host.group.state} with {len(self.host.group.members)} members")

    def is_settled(self) -> bool:
        group = self.host.group
        shares = {client.assignment for client in self.clients if client.assignment}
        return (
            group.state is ClassicState.STABLE
            and len(shares) == len(self.clients)
            and all(
                client.place is not None and client.place.generation_id == group.generation
                for client in self.clients
            )
        )

    def end(self) -> None:
        """Every client falls silent for good."""
        self.gone += self.clients
        self.clients = []
        self.host.clock.advance(NEW_MEMBER_JOIN_TIMEOUT_MS + 2 * REBALANCE_MS + SESSION_MS)
        for client in self.gone:
            for request in client.requests:
                assert len(request.answers) == 1
        group = self.host.groups.groups.get("g")
        assert isinstance(group, ClassicGroup | None)
        assert group is None or (group.state_name, len(group.pending_members)) == ("Empty", 0)
        assert len(self.host.clock.timer) == 0


def check_members(group: ClassicGroup) -> None:
    """The internal state of the group is consistent."""
    assert group.joins_parked == sum(member.join is not None for member in group)
    assert (group.leader_id in group.members) if group.members else group.leader_id is None
    assert not group.members.keys() & group.pending_members.keys()
    assert group.pending_syncs <= group.members.keys()
    assert group.static_members == {
        member.group_instance_id: name
        for name, member in group.members.items()
        if member.group_instance_id is not None
    }
    assert +group.protocol_support == Counter(name for member in group for name in member.protocol_names)
    assert all(name == member.member_id for name, member in group.members.items())


def check_state(group: ClassicGroup) -> None:
    """No member waits for an event that cannot come in this state."""
    if group.state is ClassicState.EMPTY:
        assert not group.members
    if group.state is not ClassicState.PREPARING_REBALANCE:
        assert group.joins_parked == 0
    if group.state is not ClassicState.COMPLETING_REBALANCE:
        assert not any(member.sync for member in group)
    if group.state is ClassicState.COMPLETING_REBALANCE:
        assert group.members
        assert group.leader_id in group.pending_syncs
    assert all(
        member.session is not None or member.join is not None or member.sync is not None for member in group
    )


def life(members: int) -> Life:
    """Every third client is static; old and new versions are mixed."""
    host = GroupHost()
    return Life(
        host,
        [
            Client(host, (3, 9, 5)[number % 3], f"i{number}" if number % 3 == 2 else None)
            for number in range(members)
        ],
    )


@settings(max_examples=examples(120))
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(ACTIONS),
            st.integers(0, 6),
            st.sampled_from([1, 3_000, SESSION_MS - 1, SESSION_MS, REBALANCE_MS]),
        ),
        max_size=60,
    ),
    begins_settled=st.booleans(),
)
def test_a_group_stays_consistent_settles_and_ends(
    steps: list[tuple[str, int, int]], begins_settled: bool
) -> None:
    group_life = life(7)
    if begins_settled:
        group_life.settle()
    for action, number, elapsed_ms in steps:
        group_life.act(action, number, elapsed_ms)

    group_life.settle()
    group_life.end()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_thousand_members_join_and_leave_at_random(seed: int) -> None:
    chance = random.Random(seed)
    group_life = life(1_000)
    for _ in range(12):
        for client in chance.sample(group_life.clients, 700):
            client.beat()
        for _ in range(20):
            group_life.act(
                chance.choice(ACTIONS), chance.randrange(1_000), chance.choice([100, 3_000, 9_000])
            )

    group_life.settle()
    group_life.end()
