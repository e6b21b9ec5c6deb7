"""How long offsets are kept, on the virtual clock."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.group.group_config import GroupConfig
from odradek.group.offset_expiration import OFFSETS_PER_STEP, OffsetExpiration
from odradek.wire.codec import encode
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from support.classic_groups import ClassicWorld

T, U = b"t" * 16, b"u" * 16
MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS
CONFIG = GroupConfig(offsets_retention_minutes=10, offsets_retention_check_interval_ms=MINUTE_MS)
SUBSCRIPTION = b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)


@pytest.fixture
def world() -> ClassicWorld:
    """A coordinator that looks at its offsets every minute."""
    world = ClassicWorld(CONFIG)
    OffsetExpiration(world.groups).start()
    return world


def commit(world: ClassicWorld, *topics: bytes, expire_ms: int | None = None) -> None:
    offset = CommittedOffset(
        offset=3, commit_timestamp_ms=world.clock.now_ms(), expire_timestamp_ms=expire_ms
    )
    world.groups.commit("g", {(topic, 0): offset for topic in topics})


def left(world: ClassicWorld) -> list[bytes]:
    """The topics with an offset of group ``g``."""
    return [topic for topic, _ in world.groups.offsets.of_group("g")]


def member_of_t(world: ClassicWorld) -> str:
    """The only member of a stable group that reads topic ``t``; its session is long."""
    (member,) = world.stable(protocols=(("range", SUBSCRIPTION),), session_ms=1_800_000)
    return member.member_id


def test_offsets_without_members_are_kept_for_the_retention_time(world: ClassicWorld) -> None:
    commit(world, T)

    world.clock.advance(RETENTION_MS - MINUTE_MS)

    assert left(world) == [T]


def test_offsets_without_members_expire_after_the_commit_and_the_group_with_them(
    world: ClassicWorld,
) -> None:
    commit(world, T)

    world.clock.advance(RETENTION_MS + MINUTE_MS)

    assert not world.groups.groups
    assert not ClassicWorld(store=world.store).groups.groups


def test_a_commit_starts_the_time_anew(world: ClassicWorld) -> None:
    commit(world, T)
    world.clock.advance(RETENTION_MS - MINUTE_MS)
    commit(world, T)

    world.clock.advance(RETENTION_MS - MINUTE_MS)

    assert left(world) == [T]


def test_offsets_of_topics_that_members_read_stay(world: ClassicWorld) -> None:
    member_of_t(world)
    commit(world, T)

    world.clock.advance(2 * RETENTION_MS)

    assert left(world) == [T]


def test_offsets_of_topics_that_nobody_reads_any_more_expire(world: ClassicWorld) -> None:
    member_of_t(world)
    commit(world, T, U)

    world.clock.advance(RETENTION_MS + MINUTE_MS)

    assert left(world) == [T]


def test_offsets_expire_counted_from_when_the_group_became_empty(world: ClassicWorld) -> None:
    member_id = member_of_t(world)
    commit(world, T)
    world.clock.advance(2 * RETENTION_MS)
    world.leave((member_id, None))

    world.clock.advance(RETENTION_MS - MINUTE_MS)
    kept = left(world)
    world.clock.advance(2 * MINUTE_MS)

    assert (kept, left(world)) == ([T], [])
    assert not world.groups.groups


def test_while_members_join_nothing_expires(world: ClassicWorld) -> None:
    member_id = member_of_t(world)
    commit(world, U)
    world.join_new(protocols=(("range", SUBSCRIPTION),), rebalance_ms=2_000_000)

    world.clock.advance(4 * MINUTE_MS)
    world.groups.classic.rebalance.arm_session(world.group, world.group.members[member_id], 10**9)
    world.clock.advance(RETENTION_MS)

    assert world.group.state_name == "PreparingRebalance"
    assert left(world) == [U]


def test_members_that_are_no_consumers_keep_all_offsets(world: ClassicWorld) -> None:
    world.stable(protocol_type="connect", session_ms=1_800_000)
    commit(world, T)

    world.clock.advance(2 * RETENTION_MS)

    assert left(world) == [T]


def test_consumers_that_do_not_say_what_they_read_keep_all_offsets(world: ClassicWorld) -> None:
    world.stable(session_ms=1_800_000)
    commit(world, T)

    world.clock.advance(2 * RETENTION_MS)

    assert left(world) == [T]


def test_a_time_that_a_client_asked_for_counts_instead(world: ClassicWorld) -> None:
    commit(world, T, expire_ms=world.clock.now_ms() + MINUTE_MS)

    world.clock.advance(MINUTE_MS)

    assert left(world) == []


def test_an_offset_that_an_open_transaction_commits_stays(world: ClassicWorld) -> None:
    commit(world, T)
    world.groups.offsets.add_pending(7, "g", {(T, 0): CommittedOffset(offset=9)})

    world.clock.advance(2 * RETENTION_MS)

    assert left(world) == [T]


def test_an_empty_group_without_offsets_is_removed(world: ClassicWorld) -> None:
    (member,) = world.stable()
    world.leave((member.member_id, None))

    world.clock.advance(MINUTE_MS)

    assert not world.groups.groups


def test_many_offsets_are_looked_at_in_steps(world: ClassicWorld) -> None:
    for number in range(4):
        world.groups.commit(
            f"g{number}", {(T, index): CommittedOffset(offset=1) for index in range(OFFSETS_PER_STEP)}
        )
    expiration = OffsetExpiration(world.groups)

    expiration.step()

    assert len(world.groups.groups) == 3
    assert len(expiration.left) == 3


def test_the_steps_of_a_round_follow_each_other_at_once(world: ClassicWorld) -> None:
    for number in range(4):
        world.groups.commit(
            f"g{number}", {(T, index): CommittedOffset(offset=1) for index in range(OFFSETS_PER_STEP)}
        )

    world.clock.advance(MINUTE_MS + 10)

    assert not world.groups.groups


def test_a_store_that_cannot_be_written_for_a_while_does_not_end_the_rounds(world: ClassicWorld) -> None:
    commit(world, T)
    world.store.connection.execute("pragma query_only = on")
    world.clock.advance(RETENTION_MS + MINUTE_MS)
    assert left(world) == [T]

    world.store.connection.execute("pragma query_only = off")
    world.clock.advance(MINUTE_MS)

    assert left(world) == []


def test_groups_that_end_are_removed_a_few_at_a_time(world: ClassicWorld) -> None:
    offset = CommittedOffset(offset=3, commit_timestamp_ms=world.clock.now_ms())
    for number in range(1_000):
        world.groups.commit(f"g{number}", {(T, 0): offset})

    world.clock.advance(RETENTION_MS)

    assert 900 < len(world.groups.groups) < 1_000  # the first step is over
    world.clock.advance(1_000)
    assert not world.groups.groups
