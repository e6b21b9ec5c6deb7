from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.broker.broker import Broker
from odradek.broker.features import SHARE_VERSION
from odradek.group.group_config import GroupConfig
from odradek.group.share_config import ShareGroupConfig, offset_reset
from odradek.log.control_batch import TransactionMarker
from odradek.waiting.deferred import Deferred
from odradek.wire.error_code import ErrorCode
from odradek.wire.record_batch import parse_header
from support.batches import NOW_MS, batch_of
from support.share_consumer import ShareConsumer, acquisitions, errors, share_broker, start_at

FOREVER_MS = 60_000


def configured(broker: Broker, **settings: Any) -> None:
    """Give group ``g`` settings of its own."""
    share = replace(broker.groups.config.share, **settings)
    broker.groups.own_configs["g"] = replace(broker.groups.config, share=share)


def restarted(broker: Broker) -> None:
    """Lose what is only in memory."""
    broker.shares.deliveries.forget("g", None)
    for session in list(broker.shares.sessions.sessions.values()):
        broker.shares.sessions.remove(session)


def test_records_come_as_whole_batches_with_what_was_acquired() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.append(5)

    answer = consumer.fetch(max_records=1)

    (row,) = answer.responses[0].partitions
    assert acquisitions(answer) == [(0, 4, 1)]
    header = parse_header(row.records)
    assert (header.base_offset, header.size_bytes) == (0, len(row.records))
    assert answer.acquisition_lock_timeout_ms == 30_000


def test_a_strict_fetch_gets_no_more_than_it_asks_for() -> None:
    consumer = ShareConsumer()
    consumer.append(10)

    found = [consumer.acquired(max_records=4, share_acquire_mode=1) for _ in range(3)]

    assert found == [[(0, 3, 1)], [(4, 7, 1)], [(8, 9, 1)]]


def test_a_redelivery_brings_the_batch_and_names_the_record() -> None:
    consumer = ShareConsumer()
    consumer.append(10)
    consumer.fetch()
    consumer.fetch((0, 4, 1), (5, 5, 2), (6, 9, 1), max_records=0)

    answer = consumer.fetch()

    assert acquisitions(answer) == [(5, 5, 2)]
    assert parse_header(answer.responses[0].partitions[0].records).record_count == 10


def test_at_epoch_0_every_partition_is_answered_and_later_only_those_with_news() -> None:
    consumer = ShareConsumer(share_broker(partitions=2))
    consumer.append(partition=1)

    first = consumer.fetch(partitions=(0, 1))
    second = consumer.fetch()

    assert [row.partition_index for row in first.responses[0].partitions] == [1, 0]
    assert second.responses == []


def test_the_limit_of_records_counts_over_all_partitions_which_take_turns() -> None:
    consumer = ShareConsumer(share_broker(partitions=3))
    for partition in range(3):
        consumer.append(5, partition)

    answers = [consumer.fetch(partitions=(0, 1, 2), max_records=5) for _ in range(3)]

    with_records = [
        [row.partition_index for row in answer.responses[0].partitions if row.acquired_records]
        for answer in answers
    ]
    assert with_records == [[0], [1], [2]]


def test_max_bytes_is_shared_out_and_the_first_batch_always_comes() -> None:
    consumer = ShareConsumer(share_broker(partitions=2))
    for partition in (0, 0, 1):
        consumer.append(5, partition)

    answer = consumer.fetch(partitions=(0, 1), max_bytes=1)

    assert acquisitions(answer) == [(0, 4, 1), (0, 4, 1)]


@pytest.mark.parametrize("records", [0, -1])
def test_no_records_are_wanted(records: int) -> None:
    consumer = ShareConsumer()
    consumer.append()

    assert consumer.acquired(max_records=records) == []


# Waiting


def test_a_fetch_waits_for_a_record() -> None:
    consumer = ShareConsumer()
    pending = consumer.defer(max_wait_ms=FOREVER_MS, min_bytes=1)
    assert pending() is None

    consumer.append(3)

    assert acquisitions(pending()) == [(0, 2, 1)]


def test_an_empty_answer_comes_when_the_wait_ends() -> None:
    consumer = ShareConsumer()
    pending = consumer.defer(max_wait_ms=500, min_bytes=1)

    consumer.clock.advance(500)

    assert acquisitions(pending()) == []


def test_a_fetch_waits_for_enough_bytes_then_takes_what_is_there() -> None:
    consumer = ShareConsumer()
    consumer.append()
    pending = consumer.defer(max_wait_ms=500, min_bytes=1_000)
    assert pending() is None

    consumer.clock.advance(500)

    assert acquisitions(pending()) == [(0, 0, 1)]


def test_a_released_record_wakes_another_member() -> None:
    consumer = ShareConsumer()
    other = ShareConsumer(consumer.broker, "other")
    consumer.append(5)
    consumer.fetch()
    pending = other.defer(max_wait_ms=FOREVER_MS, min_bytes=1)
    assert pending() is None

    consumer.say((0, 0, 2))

    assert acquisitions(pending()) == [(0, 0, 2)]


def test_the_end_of_a_lock_wakes_another_member() -> None:
    consumer = ShareConsumer()
    other = ShareConsumer(consumer.broker, "other")
    consumer.append(5)
    consumer.fetch()
    pending = other.defer(max_wait_ms=FOREVER_MS, min_bytes=1)

    consumer.clock.advance(30_000)

    assert acquisitions(pending()) == [(0, 4, 2)]


def test_room_in_flight_wakes_a_fetch() -> None:
    consumer = ShareConsumer()
    configured(consumer.broker, partition_max_record_locks=100)
    other = ShareConsumer(consumer.broker, "other")
    consumer.append(100)
    consumer.append(5)
    assert consumer.acquired(max_records=100) == [(0, 99, 1)]
    pending = other.defer(max_wait_ms=FOREVER_MS, min_bytes=1)
    assert pending() is None

    consumer.say((0, 0, 1))

    assert acquisitions(pending()) == [(100, 104, 1)]


def test_a_lost_connection_releases_at_once_and_ends_its_session_only() -> None:
    consumer = ShareConsumer()
    other = ShareConsumer(consumer.broker, "other")
    consumer.append(5)
    consumer.fetch()
    pending = other.defer(max_wait_ms=FOREVER_MS, min_bytes=1)

    consumer.broker.shares.connection_closed("m")

    assert acquisitions(pending()) == [(0, 4, 2)]
    assert consumer.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


def test_changed_offsets_wake_a_fetch() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.fetch()
    consumer.say((0, 4, 1))
    pending = consumer.defer(max_wait_ms=FOREVER_MS, min_bytes=1)
    assert pending() is None

    start_at(consumer.broker, 2)
    consumer.broker.groups.shares.dropped("g", [(consumer.topic_id, 0)])

    assert acquisitions(pending()) == [(2, 4, 1)]


def test_a_waiting_fetch_leaves_nothing_behind() -> None:
    consumer = ShareConsumer()
    consumer.fetch()
    idle = len(consumer.clock.timer)
    (delivery,) = consumer.broker.shares.deliveries.groups["g"].values()
    request = consumer.request(max_wait_ms=FOREVER_MS, min_bytes=1)
    frame = consumer.client.frame(request, 2)
    waiting = consumer.client.dispatcher.answer(frame, 0, consumer.client.connection)

    assert isinstance(waiting, Deferred)
    waiting.lost()

    assert len(consumer.clock.timer) == idle
    assert not delivery.partition.listeners
    assert not consumer.broker.topics.log("t", 0).listeners


# Sessions


def test_epochs_count_the_requests() -> None:
    consumer = ShareConsumer()

    assert consumer.fetch(epoch=5).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    consumer.epoch = 0
    assert consumer.fetch().error_code == 0
    assert consumer.fetch(epoch=2).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert consumer.fetch(epoch=1).error_code == 0
    assert consumer.fetch(epoch=1).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert consumer.fetch(epoch=2).error_code == 0


def test_the_final_epoch_takes_the_last_words_and_releases_the_rest() -> None:
    consumer = ShareConsumer()
    consumer.append(10)
    consumer.fetch()

    answer = consumer.fetch((0, 4, 1), epoch=-1)

    assert (errors(answer), acquisitions(answer)) == ([], [])
    assert consumer.fetch(epoch=-1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    consumer.epoch = 0
    assert consumer.acquired() == [(5, 9, 2)]


def test_a_new_session_has_nothing_to_acknowledge() -> None:
    assert ShareConsumer().fetch((0, 0, 1)).error_code == ErrorCode.INVALID_REQUEST


def test_a_member_keeps_what_it_holds_when_it_opens_a_new_session() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.fetch()

    assert consumer.acquired(epoch=0) == []
    consumer.epoch = 1
    assert consumer.say((0, 4, 1)) == 0


def test_partitions_are_added_and_forgotten() -> None:
    consumer = ShareConsumer(share_broker(partitions=2))
    consumer.append(partition=1)
    consumer.fetch(partitions=(0, 1), max_records=0)

    assert consumer.acquired(forgotten=(1,)) == []

    assert consumer.broker.shares.sessions.partitions == 1


def test_there_are_so_many_sessions_and_the_error_comes_late() -> None:
    share = ShareGroupConfig(max_share_sessions=1)
    consumer = ShareConsumer(share_broker(groups=GroupConfig(share=share)))
    consumer.fetch()
    pending = ShareConsumer(consumer.broker, "other").defer(max_wait_ms=500)
    assert pending() is None

    consumer.clock.advance(500)

    assert pending().error_code == ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert consumer.fetch(epoch=0).error_code == 0


@pytest.mark.parametrize("fields", [{"group_id": None}, {"member_id": None}, {"member_id": "m" * 37}])
def test_group_and_member_are_needed(fields: dict[str, Any]) -> None:
    assert ShareConsumer().fetch(**fields).error_code == ErrorCode.INVALID_REQUEST


def test_an_unknown_acquire_mode_is_refused() -> None:
    assert ShareConsumer().fetch(share_acquire_mode=2).error_code == ErrorCode.INVALID_REQUEST


def test_without_the_feature_nothing_is_served() -> None:
    consumer = ShareConsumer()
    consumer.broker.finalize({SHARE_VERSION: 0})

    assert consumer.fetch().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert consumer.acknowledge(share_session_epoch=1).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_a_client_that_leaves_while_it_waits_is_charged_for_its_time() -> None:
    consumer = ShareConsumer()
    consumer.broker.quotas.is_enabled = consumer.broker.quotas.fetch.is_enabled = True
    frame = consumer.client.frame(consumer.request(max_wait_ms=FOREVER_MS), 2)
    waiting = consumer.client.dispatcher.answer(frame, 0, consumer.client.connection)
    assert isinstance(waiting, Deferred)

    waiting.lost()

    assert not any(each.listeners for each in consumer.broker.shares.deliveries.partitions())


# Partitions


def test_errors_of_partitions() -> None:
    consumer = ShareConsumer()

    assert errors(consumer.fetch(topic_id=b"x" * 16)) == [ErrorCode.UNKNOWN_TOPIC_ID]
    assert errors(consumer.fetch(epoch=0, partitions=(7,))) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert errors(consumer.fetch(epoch=0, group_id="unknown")) == [ErrorCode.UNKNOWN_SERVER_ERROR]


def test_a_deleted_topic_is_unknown_and_its_deliveries_are_forgotten() -> None:
    consumer = ShareConsumer()
    consumer.append()
    consumer.fetch()
    pending = consumer.defer(max_wait_ms=FOREVER_MS, min_bytes=1)
    assert pending() is None

    consumer.broker.topics.delete(consumer.broker.topics.by_name["t"])

    assert errors(pending()) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert consumer.broker.shares.deliveries.groups == {}


def test_a_group_begins_at_the_end_and_remembers_it() -> None:
    consumer = ShareConsumer()
    start_at(consumer.broker, -1)
    consumer.append(5)
    assert consumer.acquired() == []
    consumer.append(3)

    restarted(consumer.broker)

    consumer.epoch = 0
    assert consumer.acquired() == [(5, 7, 1)]


def test_a_group_begins_at_the_beginning() -> None:
    consumer = ShareConsumer()
    start_at(consumer.broker, -1)
    configured(consumer.broker, auto_offset_reset=offset_reset("earliest"))
    consumer.append(5)

    assert consumer.acquired() == [(0, 4, 1)]


def test_a_group_begins_some_time_ago() -> None:
    consumer = ShareConsumer()
    start_at(consumer.broker, -1)
    configured(consumer.broker, auto_offset_reset=offset_reset("by_duration:PT1H"))
    hour_ago_ms = consumer.clock.now_ms() - 3_600_000
    consumer.append(2, timestamp_ms=hour_ago_ms - 1)
    assert errors(consumer.fetch()) == [ErrorCode.OFFSET_NOT_AVAILABLE]
    consumer.append(2, timestamp_ms=hour_ago_ms)

    assert consumer.acquired() == [(2, 3, 1)]


def test_deleted_records_are_done() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.append(5)
    consumer.fetch(max_records=1)

    consumer.broker.topics.log("t", 0).delete_records(7)

    assert consumer.acquired() == [(7, 9, 1)]
    assert consumer.say((0, 4, 1)) == 0


# Persistence


def test_a_restart_keeps_what_was_acknowledged() -> None:
    consumer = ShareConsumer()
    consumer.append(10)
    consumer.fetch()
    consumer.say((0, 2, 1), (4, 4, 3), (5, 5, 2))

    restarted(consumer.broker)

    consumer.epoch = 0
    assert consumer.acquired() == [(3, 3, 1), (5, 5, 2), (6, 9, 1)]


def test_acquiring_stores_nothing_and_a_whole_batch_is_one_span() -> None:
    consumer = ShareConsumer()
    store = consumer.broker.shares.deliveries.store
    for _ in range(500):
        consumer.append()
    before = store.share_partition("g", consumer.topic_id, 0)

    assert consumer.acquired() == [(0, 499, 1)]

    assert store.share_partition("g", consumer.topic_id, 0) == before
    consumer.say((0, 499, 1))
    after = store.share_partition("g", consumer.topic_id, 0)
    assert after is not None
    assert (after[3], after[4], len(after[5])) == (0, 500, 19)


# Acknowledgements on the way


def test_acknowledgements_come_before_the_fetch() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.fetch()

    answer = consumer.fetch((0, 3, 1), (4, 4, 2))

    assert (errors(answer), acquisitions(answer)) == ([], [(4, 4, 2)])


def test_a_refused_acknowledgement_does_not_stop_the_fetch() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.fetch()
    consumer.append(5)

    answer = consumer.fetch((5, 5, 1))

    assert errors(answer) == [ErrorCode.INVALID_REQUEST]
    assert acquisitions(answer) == [(5, 9, 1)]


def test_a_renewal_fetches_nothing() -> None:
    consumer = ShareConsumer()
    consumer.append(5)
    consumer.fetch()
    consumer.append(5)
    consumer.clock.advance(20_000)

    refused = consumer.fetch((0, 4, 4), is_renew_ack=True)
    consumer.epoch = 1
    nothing = {"max_records": 0, "max_bytes": 0, "min_bytes": 0, "max_wait_ms": 0}
    answer = consumer.fetch((0, 4, 4), is_renew_ack=True, **nothing)

    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert (errors(answer), acquisitions(answer)) == ([], [])
    consumer.clock.advance(29_999)
    assert consumer.acquired() == [(5, 9, 1)]
    consumer.clock.advance(1)
    assert consumer.acquired() == [(0, 4, 2)]


# Transactions


def test_a_group_reads_open_transactions_unless_it_is_told_not_to() -> None:
    consumer = ShareConsumer()
    log = consumer.broker.topics.log("t", 0)
    consumer.append(1)
    log.append(
        batch_of(b"a", b"b", producer=(7, 0, 0), transactional=True), NOW_MS, join_transaction=lambda _: None
    )
    configured(consumer.broker, isolation_level="read_committed")
    assert consumer.acquired() == [(0, 0, 1)]
    pending = consumer.defer(max_wait_ms=FOREVER_MS, min_bytes=1)
    consumer.append(1)
    assert pending() is None

    log.append_marker(TransactionMarker(7, 0, committed=False), NOW_MS)

    assert acquisitions(pending()) == [(3, 4, 1)]
