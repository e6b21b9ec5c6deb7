"""The retention of offsets, on a mock clock."""

from __future__ import annotations

import pytest

from odradek.group.committed_offset import CommittedOffset
from odradek.group.group_config import GroupConfig
from odradek.group.offset_expiration import OFFSETS_PER_STEP, OffsetExpiration
from odradek.wire.codec import encode
from odradek.wire.messages.consumer_protocol import ConsumerProtocolSubscription
from support.classic_groups import GroupHost

T, U = b"t" * 16, b"u" * 16
MINUTE_MS = 60_000
RETENTION_MS = 10 * MINUTE_MS
CONFIG = GroupConfig(offsets_retention_minutes=10, offsets_retention_check_interval_ms=MINUTE_MS)
SUBSCRIPTION = b"\x00\x00" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)


@pytest.fixture
def host() -> GroupHost:
    """A coordinator that checks its offsets every minute."""
    host = GroupHost(CONFIG)
    OffsetExpiration(host.groups).start()
    return host


def commit(host: GroupHost, *topics: bytes, expire_ms: int | None = None) -> None:
    offset = CommittedOffset(offset=3, commit_timestamp_ms=host.clock.now_ms(), expire_timestamp_ms=expire_ms)
    host.groups.commit("g", {(topic, 0): offset for topic in topics})


def left(host: GroupHost) -> list[bytes]:
    """The topics with an offset of group ``g``."""
    return [topic for topic, _ in host.groups.offsets.of_group("g")]


def member_of_t(host: GroupHost) -> str:
    """The only member of a stable group that reads topic ``t``; its session timeout is long."""
    (member,) = host.stable(protocols=(("range", SUBSCRIPTION),), session_ms=1_800_000)
    return member.member_id


def test_offsets_without_members_are_kept_for_the_retention_time(host: GroupHost) -> None:
    commit(host, T)

    host.clock.advance(RETENTION_MS - MINUTE_MS)

    assert left(host) == [T]


def test_offsets_without_members_expire_after_the_commit_together_with_the_group(
    host: GroupHost,
) -> None:
    commit(host, T)

    host.clock.advance(RETENTION_MS + MINUTE_MS)

    assert not host.groups.groups
    assert not GroupHost(store=host.store).groups.groups


def test_a_commit_restarts_the_retention_time(host: GroupHost) -> None:
    commit(host, T)
    host.clock.advance(RETENTION_MS - MINUTE_MS)
    commit(host, T)

    host.clock.advance(RETENTION_MS - MINUTE_MS)

    assert left(host) == [T]


def test_offsets_of_subscribed_topics_do_not_expire(host: GroupHost) -> None:
    member_of_t(host)
    commit(host, T)

    host.clock.advance(2 * RETENTION_MS)

    assert left(host) == [T]


def test_offsets_of_topics_without_subscribers_expire(host: GroupHost) -> None:
    member_of_t(host)
    commit(host, T, U)

    host.clock.advance(RETENTION_MS + MINUTE_MS)

    assert left(host) == [T]


def test_offsets_expire_counted_from_when_the_group_became_empty(host: GroupHost) -> None:
    member_id = member_of_t(host)
    commit(host, T)
    host.clock.advance(2 * RETENTION_MS)
    host.leave((member_id, None))

    host.clock.advance(RETENTION_MS - MINUTE_MS)
    kept = left(host)
    host.clock.advance(2 * MINUTE_MS)

    assert (kept, left(host)) == ([T], [])
    assert not host.groups.groups


def test_during_a_rebalance_no_offsets_expire(host: GroupHost) -> None:
    member_id = member_of_t(host)
    commit(host, U)
    host.join_new(protocols=(("range", SUBSCRIPTION),), rebalance_ms=2_000_000)

    host.clock.advance(4 * MINUTE_MS)
    host.groups.rebalance.arm_session(host.group, host.group.members[member_id], 10**9)
    host.clock.advance(RETENTION_MS)

    assert host.group.state_name == "PreparingRebalance"
    assert left(host) == [U]


def test_members_of_another_protocol_type_keep_all_offsets(host: GroupHost) -> None:
    host.stable(protocol_type="connect", session_ms=1_800_000)
    commit(host, T)

    host.clock.advance(2 * RETENTION_MS)

    assert left(host) == [T]


def test_consumers_with_an_unreadable_subscription_keep_all_offsets(host: GroupHost) -> None:
    host.stable(session_ms=1_800_000)
    commit(host, T)

    host.clock.advance(2 * RETENTION_MS)

    assert left(host) == [T]


def test_a_retention_time_asked_for_by_the_client_applies(host: GroupHost) -> None:
    commit(host, T, expire_ms=host.clock.now_ms() + MINUTE_MS)

    host.clock.advance(MINUTE_MS)

    assert left(host) == []


def test_an_offset_pending_in_an_open_transaction_does_not_expire(host: GroupHost) -> None:
    commit(host, T)
    host.groups.offsets.add_pending(7, "g", {(T, 0): CommittedOffset(offset=9)})

    host.clock.advance(2 * RETENTION_MS)

    assert left(host) == [T]


def test_an_empty_group_without_offsets_is_removed(host: GroupHost) -> None:
    (member,) = host.stable()
    host.leave((member.member_id, None))

    host.clock.advance(MINUTE_MS)

    assert not host.groups.groups


def test_many_offsets_are_checked_in_steps(host: GroupHost) -> None:
    for number in range(4):
        host.groups.commit(
            f"g{number}", {(T, index): CommittedOffset(offset=1) for index in range(OFFSETS_PER_STEP)}
        )
    expiration = OffsetExpiration(host.groups)

    expiration.step()

    assert len(host.groups.groups) == 3
    assert len(expiration.left) == 3


def test_the_steps_of_a_round_follow_each_other_at_once(host: GroupHost) -> None:
    for number in range(4):
        host.groups.commit(
            f"g{number}", {(T, index): CommittedOffset(offset=1) for index in range(OFFSETS_PER_STEP)}
        )

    host.clock.advance(MINUTE_MS + 10)

    assert not host.groups.groups


def test_a_store_that_fails_for_a_while_does_not_end_the_rounds(host: GroupHost) -> None:
    commit(host, T)
    host.store.connection.execute("pragma query_only = on")
    host.clock.advance(RETENTION_MS + MINUTE_MS)
    assert left(host) == [T]

    host.store.connection.execute("pragma query_only = off")
    host.clock.advance(MINUTE_MS)

    assert left(host) == []


def test_expired_groups_are_removed_a_few_at_a_time(host: GroupHost) -> None:
    offset = CommittedOffset(offset=3, commit_timestamp_ms=host.clock.now_ms())
    for number in range(1_000):
        host.groups.commit(f"g{number}", {(T, 0): offset})

    host.clock.advance(RETENTION_MS)

    assert 900 < len(host.groups.groups) < 1_000  # the first step is over
    host.clock.advance(1_000)
    assert not host.groups.groups
