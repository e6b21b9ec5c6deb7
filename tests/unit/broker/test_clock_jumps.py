"""The wall clock jumps an hour while clients are connected: no deadline, interval or window notices."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.broker.fetch.fetch_session import MIN_EVICTION_MS
from odradek.transaction.transaction_state import TransactionState
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from odradek.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsRequest
from odradek.wire.messages.heartbeat import HeartbeatRequest
from odradek.wire.messages.init_producer_id import InitProducerIdRequest
from odradek.wire.messages.push_telemetry import PushTelemetryRequest
from support.batches import batch_of
from support.broker import make_broker
from support.data_requests import fetch_request, produce_request
from support.group_client import SESSION_MS, GroupClient
from support.quota_client import QuotaClient

HOUR_MS = 3_600_000
INTERVAL_MS = 30_000
DATA = b"\x0a\x00"
BOTH_WAYS = pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS], ids=["back", "forward"])


class Observer:
    """A receiver that counts pushes."""

    pushes = 0

    def export_metrics(self, context: object, payload: object) -> None:
        self.pushes += 1


@pytest.fixture
def client() -> GroupClient:
    client = GroupClient(make_broker())
    client.broker.topics.create("t", 1, {})
    return client


def pushing(client: GroupClient) -> Callable[[], ErrorCode]:
    """A function that pushes metrics once and returns the error code."""
    client.broker.telemetry.update_subscription("all", {"metrics": "*", "interval.ms": str(INTERVAL_MS)})
    client.broker.telemetry.plugin.add_receiver("observer", Observer())
    told = client.send(GetTelemetrySubscriptionsRequest())

    def push() -> ErrorCode:
        request = PushTelemetryRequest(
            client_instance_id=told.client_instance_id, subscription_id=told.subscription_id, metrics=DATA
        )
        return ErrorCode(client.send(request).error_code)

    return push


@BOTH_WAYS
def test_a_push_interval_keeps_its_length(client: GroupClient, jump_ms: int) -> None:
    push = pushing(client)
    assert push() is ErrorCode.NONE

    client.clock.jump(jump_ms)
    client.clock.advance(INTERVAL_MS - 1)
    early = push()
    client.clock.advance(1)

    assert (early, push()) == (ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE)


@BOTH_WAYS
def test_pushes_go_on_after_the_clock_is_set_right_again(client: GroupClient, jump_ms: int) -> None:
    push = pushing(client)
    answers = [push()]

    for set_by_ms in (jump_ms, -jump_ms):
        client.clock.jump(set_by_ms)
        client.clock.advance(INTERVAL_MS)
        answers.append(push())

    assert answers == [ErrorCode.NONE] * 3


@BOTH_WAYS
def test_a_client_instance_expires_when_it_was_silent_for_long(client: GroupClient, jump_ms: int) -> None:
    pushing(client)
    silent_ms = max(client.broker.telemetry.config.cache_expiry_ms, 3 * INTERVAL_MS)

    client.clock.jump(jump_ms)
    client.clock.advance(silent_ms - 1)
    before = len(client.broker.telemetry.instances())
    client.clock.advance(1)

    assert (before, len(client.broker.telemetry.instances())) == (1, 0)


@BOTH_WAYS
def test_a_long_poll_waits_as_long_as_it_asked_for(client: GroupClient, jump_ms: int) -> None:
    answers = client.post(fetch_request("t", max_wait_ms=500), 12)

    client.clock.jump(jump_ms)
    client.clock.advance(499)
    before = len(answers)
    client.clock.advance(1)

    assert (before, len(answers)) == (0, 1)


@BOTH_WAYS
def test_a_long_poll_that_starts_after_the_jump_ends_in_time(client: GroupClient, jump_ms: int) -> None:
    client.clock.jump(jump_ms)

    test_a_long_poll_waits_as_long_as_it_asked_for(client, -jump_ms)


@BOTH_WAYS
def test_a_fetch_session_in_use_is_not_evicted(jump_ms: int) -> None:
    broker = make_broker()
    sessions = broker.fetch_sessions
    sessions.slots = 1
    broker.topics.create("t", 1, {})
    client = GroupClient(broker)
    opening = fetch_request("t", session_epoch=0)
    ids = [client.send(opening, 12).session_id]

    client.clock.jump(jump_ms)
    ids.append(client.send(opening, 12).session_id)
    client.clock.advance(MIN_EVICTION_MS + 1)
    ids.append(client.send(opening, 12).session_id)

    assert [bool(each) for each in ids] == [True, False, True]


@BOTH_WAYS
def test_a_member_of_a_classic_group_lives_as_long_as_its_session(client: GroupClient, jump_ms: int) -> None:
    (member,) = client.stable_group()
    beat = HeartbeatRequest(group_id="g", generation_id=member.generation_id, member_id=member.member_id)
    answers = []

    for wait_ms in (SESSION_MS - 1, SESSION_MS - 1, SESSION_MS):
        client.clock.jump(jump_ms)
        client.clock.advance(wait_ms)
        answers.append(client.send(beat).error_code)

    assert answers == [ErrorCode.NONE, ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


@BOTH_WAYS
def test_a_rebalance_ends_after_its_delay(client: GroupClient, jump_ms: int) -> None:
    answers = client.post(client.joining(member_id=client.member_id()))

    client.clock.jump(jump_ms)
    client.clock.advance(2_999)
    before = len(answers)
    client.clock.advance(1)

    assert (before, len(answers)) == (0, 1)


@BOTH_WAYS
def test_a_member_of_a_consumer_group_lives_as_long_as_its_session(client: GroupClient, jump_ms: int) -> None:
    session_ms = client.broker.groups.config.consumer_session_timeout_ms
    beat = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m" * 22, subscribed_topic_names=["t"])
    beat.rebalance_timeout_ms, beat.topic_partitions = 60_000, []
    joined = client.send(beat)
    assert joined.error_code == ErrorCode.NONE
    again = ConsumerGroupHeartbeatRequest(group_id="g", member_id="m" * 22, member_epoch=joined.member_epoch)
    answers = []

    for wait_ms in (session_ms - 1, session_ms):
        client.clock.jump(jump_ms)
        client.clock.advance(wait_ms)
        answers.append(client.send(again).error_code)

    assert answers == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]


@BOTH_WAYS
def test_a_transaction_is_aborted_at_its_timeout(client: GroupClient, jump_ms: int) -> None:
    coordinator = client.broker.transactions
    sweep_ms = coordinator.config.abort_timed_out_interval_ms
    begun = client.send(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=60_000), 5)
    request = AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="tx",
        v3_and_below_producer_id=begun.producer_id,
        v3_and_below_producer_epoch=begun.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    client.send(request, 3)

    client.clock.jump(jump_ms)
    client.clock.advance(60_000)
    before = coordinator.transactions["tx"].state
    client.clock.advance(sweep_ms)

    assert before is TransactionState.ONGOING
    assert coordinator.transactions["tx"].state is TransactionState.COMPLETE_ABORT


@BOTH_WAYS
def test_a_quota_forgets_nothing_and_earns_nothing(jump_ms: int) -> None:
    settled, jumped = QuotaClient(), QuotaClient()
    told: list[list[int]] = []

    for client in (settled, jumped):
        client.limit(producer_byte_rate=500.0)
        answers = []
        for _ in range(5):
            answers.append(client.produce(4_000).throttle_time_ms)
            if client is jumped:
                client.clock.jump(jump_ms)
            client.clock.advance(1_000)
        told.append(answers)

    assert told[0][-1] > 0
    assert told[1] == told[0]


@BOTH_WAYS
def test_a_throttled_channel_is_freed_in_time(jump_ms: int) -> None:
    client = QuotaClient()
    client.limit(producer_byte_rate=500.0)
    client.produce(20_000)
    throttled_ms = client.muted_ms
    assert throttled_ms > 1

    client.clock.jump(jump_ms)
    client.clock.advance(throttled_ms - 1)
    before = client.quotas.produce.queue_size(client.clock.monotonic_ms())
    client.clock.advance(1)

    assert (before, client.quotas.produce.queue_size(client.clock.monotonic_ms())) == (1, 0)


@BOTH_WAYS
def test_a_mutation_quota_refills_with_the_time_that_passes(jump_ms: int) -> None:
    client = QuotaClient()
    client.limit(controller_mutation_rate=1.0)
    names = iter("abcdefgh")

    def create() -> int:
        topic = CreatableTopic(name=next(names), num_partitions=20, replication_factor=1)
        response = client.send(CreateTopicsRequest(topics=[topic], timeout_ms=1_000))
        code: int = response.topics[0].error_code
        return code

    answers = [create()]
    client.clock.jump(jump_ms)
    answers.append(create())
    client.clock.advance(10_000)
    answers.append(create())

    assert answers == [ErrorCode.NONE, ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.NONE]


@BOTH_WAYS
def test_timestamps_follow_the_wall_clock(client: GroupClient, jump_ms: int) -> None:
    client.broker.topics.create("stamped", 1, {"message.timestamp.type": "LogAppendTime"})
    before_ms = client.clock.now_ms()
    client.clock.jump(jump_ms)

    response = client.send(produce_request("stamped", batch_of(b"x")), 12)

    (answer,) = response.responses[0].partition_responses
    assert answer.log_append_time_ms == before_ms + jump_ms
