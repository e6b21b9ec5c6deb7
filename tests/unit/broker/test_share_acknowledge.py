from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.share_acknowledge import AcknowledgePartition, AcknowledgeTopic
from support.grants import Grants, grant
from support.share_consumer import ShareConsumer, Words, batches, errors, share_broker


@pytest.fixture
def consumer() -> ShareConsumer:
    """It holds the records 0 to 9."""
    consumer = ShareConsumer()
    consumer.append(10)
    consumer.fetch()
    return consumer


def test_accepted_records_are_done(consumer: ShareConsumer) -> None:
    answer = consumer.acknowledge((0, 9, 1))

    assert errors(answer) == []
    assert answer.acquisition_lock_timeout_ms == 30_000
    assert consumer.acquired() == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((0, 0, 4), ErrorCode.INVALID_REQUEST),
        ((1, 0, 1), ErrorCode.INVALID_REQUEST),
        ((0, 3, [1, 2]), ErrorCode.INVALID_REQUEST),
        ((0, 10, 1), ErrorCode.INVALID_REQUEST),
    ],
)
def test_refused_words(consumer: ShareConsumer, words: Words, code: ErrorCode) -> None:
    assert consumer.say(words) == code

    assert consumer.say((0, 9, 1)) == 0


def test_records_of_another_member(consumer: ShareConsumer) -> None:
    other = ShareConsumer(consumer.broker, "other")
    other.fetch()

    assert other.say((0, 9, 1)) == ErrorCode.INVALID_RECORD_STATE


def test_records_that_are_held_no_longer(consumer: ShareConsumer) -> None:
    consumer.clock.advance(30_000)

    assert consumer.say((0, 9, 1)) == ErrorCode.INVALID_RECORD_STATE


def test_locks_are_renewed_where_the_request_says_so(consumer: ShareConsumer) -> None:
    consumer.clock.advance(20_000)

    assert consumer.say((0, 9, 4), is_renew_ack=True) == 0
    assert consumer.say((0, 0, 4), is_renew_ack=False) == ErrorCode.INVALID_REQUEST

    consumer.clock.advance(29_999)
    assert consumer.say((0, 9, 1)) == 0


def test_a_group_may_forbid_renewals(consumer: ShareConsumer) -> None:
    groups = consumer.broker.groups
    groups.config = replace(groups.config, share=replace(groups.config.share, renew_acknowledge_enable=False))

    assert consumer.say((0, 9, 4), is_renew_ack=True) == ErrorCode.INVALID_RECORD_STATE


@pytest.mark.parametrize(
    ("epoch", "code"),
    [(0, ErrorCode.INVALID_SHARE_SESSION_EPOCH), (7, ErrorCode.INVALID_SHARE_SESSION_EPOCH)],
)
def test_epochs(consumer: ShareConsumer, epoch: int, code: ErrorCode) -> None:
    assert consumer.acknowledge(share_session_epoch=epoch).error_code == code

    assert consumer.acknowledge(share_session_epoch=1).error_code == 0
    assert consumer.acknowledge(share_session_epoch=1).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_the_final_epoch_releases_and_ends_the_session(consumer: ShareConsumer) -> None:
    assert consumer.say((0, 4, 1), share_session_epoch=-1) == 0

    assert consumer.acknowledge(share_session_epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ShareConsumer(consumer.broker, "other").acquired() == [(5, 9, 2)]


@pytest.mark.parametrize(
    ("topic_id", "partition", "words", "expected"),
    [
        (b"x" * 16, 0, ((0, 0, 1),), [ErrorCode.UNKNOWN_TOPIC_ID]),
        (None, 7, ((0, 0, 1),), [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]),
        (None, 7, ((0, 0, 9),), [ErrorCode.INVALID_REQUEST]),
        (None, 0, (), []),
    ],
)
def test_partitions_that_do_not_exist_or_say_nothing(
    consumer: ShareConsumer,
    topic_id: bytes | None,
    partition: int,
    words: tuple[Words, ...],
    expected: list[ErrorCode],
) -> None:
    named = AcknowledgePartition(partition_index=partition, acknowledgement_batches=batches(words))
    topic = AcknowledgeTopic(topic_id=topic_id or consumer.topic_id, partitions=[named])

    answer = consumer.acknowledge(topics=[topic])

    assert errors(answer) == expected
    assert len(answer.responses) == len(expected)


def test_what_cannot_be_stored_is_refused_and_delivered_again(
    consumer: ShareConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_rows: Any) -> None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    with monkeypatch.context() as patched:
        patched.setattr(consumer.broker.shares.deliveries.store, "put_share_partitions", fail)
        assert consumer.say((0, 9, 1)) == ErrorCode.COORDINATOR_NOT_AVAILABLE

    assert consumer.acquired() == [(0, 9, 1)]


def test_rights() -> None:
    rights = Grants(["READ GROUP g", "READ TOPIC t"])
    consumer = ShareConsumer(share_broker(authorizer=rights))
    consumer.append(10)
    consumer.fetch()

    rights.granted.remove(grant("READ TOPIC t"))

    assert consumer.say((0, 9, 1)) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert errors(consumer.fetch()) == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    rights.granted.clear()
    assert consumer.fetch().error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
