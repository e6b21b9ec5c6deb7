"""Transaction markers and offsets in the partitions and groups they belong to."""

from __future__ import annotations

import pytest

from odradek.broker.transactions.transaction_participants import (
    OFFSETS_TOPIC,
    Participants,
    offsets_partition,
)
from odradek.group.group_offsets import GroupOffsets
from odradek.log.control_batch import TransactionMarker
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.broker import make_broker


def participants() -> Participants:
    broker = make_broker()
    broker.topics.create("t", 1, {})
    return Participants(broker.topics, broker.groups.offsets, broker.clock)


@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("", 0), ("a", 47), ("my-group", 36), ("polygenelubricants", 0), ("naïve-ÿ", 17), ("😀", 49)],
)
def test_groups_have_kafkas_offsets_partitions(group_id: str, partition: int) -> None:
    found = offsets_partition(group_id)

    assert found == (OFFSETS_TOPIC, partition)


@pytest.mark.parametrize("partition", [("gone", 0), ("t", 5), (OFFSETS_TOPIC, 0)])
def test_an_unknown_partition_is_skipped(partition: tuple[str, int]) -> None:
    everywhere = participants()

    everywhere.write_marker(partition, 1, 0, committed=True)

    assert everywhere.topics.log("t", 0).log_end_offset == 0


def test_a_late_marker_is_skipped() -> None:
    everywhere = participants()
    log = everywhere.topics.log("t", 0)
    log.append_marker(TransactionMarker(1, 5, committed=True), 0)

    everywhere.write_marker(("t", 0), 1, 4, committed=True)

    assert log.log_end_offset == 1


def test_a_full_disk_is_reported_to_the_coordinator(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = participants()

    def full(*_: object) -> None:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)

    monkeypatch.setattr(type(everywhere.topics.log("t", 0)), "append_marker", full)

    with pytest.raises(ApiError) as refused:
        everywhere.write_marker(("t", 0), 1, 0, committed=True)

    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR


def test_offsets_that_cannot_be_stored_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    everywhere = participants()
    everywhere.offsets.add_pending(1, "g", {})
    everywhere.offsets.open_transactions["g"] = {1: {}}

    def full(*_: object) -> None:
        raise ApiError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    monkeypatch.setattr(GroupOffsets, "complete", full)

    with pytest.raises(ApiError) as refused:
        everywhere.complete_offsets(1, committed=True)

    assert refused.value.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
