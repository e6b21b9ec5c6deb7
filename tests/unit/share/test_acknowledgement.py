from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from odradek.share.acknowledgement import parsed
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


@dataclass
class Batch:
    first_offset: int
    last_offset: int
    acknowledge_types: list[int] = field(default_factory=lambda: [1])


def test_one_type_stands_for_the_whole_batch() -> None:
    assert parsed([Batch(0, 499), Batch(500, 500, [3])], 3) == [(0, 499, 1), (500, 500, 3)]


def test_types_of_single_records_are_joined() -> None:
    assert parsed([Batch(10, 14, [1, 1, 2, 3, 3])], 3) == [(10, 11, 1), (12, 12, 2), (13, 14, 3)]


@pytest.mark.parametrize(
    "batches",
    [
        [Batch(1, 0)],
        [Batch(0, 5), Batch(3, 4)],
        [Batch(0, 5, [])],
        [Batch(0, 5, [1, 2])],
        [Batch(0, 0, [4])],
        [Batch(0, 0, [-1])],
        [Batch(-1, 0)],
    ],
)
def test_batches_that_contradict_themselves_are_refused(batches: list[Batch]) -> None:
    with pytest.raises(ApiError) as caught:
        parsed(batches, 3)

    assert caught.value.code is ErrorCode.INVALID_REQUEST


def test_a_record_is_spoken_of_once() -> None:
    with pytest.raises(ApiError) as caught:
        parsed([Batch(0, 5), Batch(5, 6)], 3)

    assert caught.value.code is ErrorCode.INVALID_RECORD_STATE
