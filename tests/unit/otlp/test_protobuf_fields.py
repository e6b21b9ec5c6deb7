from __future__ import annotations

import pytest

from odradek.otlp.protobuf_bytes import NotOtlp, delimited, varint
from odradek.otlp.protobuf_fields import FieldBudget, TooMuchWork, fields


def walked(data: bytes, budget: int = 100) -> list[tuple[int, int, int, int]]:
    return list(fields(data, FieldBudget(budget)))


@pytest.mark.parametrize(
    ("number", "encoded"),
    [
        (0, b"\x00"),
        (127, b"\x7f"),
        (128, b"\x80\x01"),
        (16_383, b"\xff\x7f"),
        (16_384, b"\x80\x80\x01"),
        (2**32, b"\x80\x80\x80\x80\x10"),
    ],
)
def test_lengths_are_varints(number: int, encoded: bytes) -> None:
    assert varint(number) == encoded


def test_fields_of_every_kind_are_parsed() -> None:
    data = b"\x08\x96\x01" + b"\x11" + bytes(8) + b"\x1d" + bytes(4) + delimited(0x22, b"abc")

    found = walked(data)

    assert found == [(0x08, 0, 1, 3), (0x11, 3, 4, 12), (0x1D, 12, 13, 17), (0x22, 17, 19, 22)]


def test_long_values_and_long_tags_are_parsed() -> None:
    data = b"\x82\x01" + varint(300) + bytes(300)

    found = walked(data)

    assert found == [(0x82, 0, 4, 304)]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a",
        b"\x0a\x02a",
        b"\x08",
        b"\x08\x80",
        b"\x09\x00",
        b"\x0d\x00",
        b"\x0b\x0c",
        b"\x80" * 11,
        b"\x0e",
        b"\x00\x00",
    ],
)
def test_broken_bytes_are_not_otlp(data: bytes) -> None:
    with pytest.raises(NotOtlp):
        walked(data)


def test_field_cannot_extend_beyond_its_message() -> None:
    data = delimited(0x0A, b"abcd")

    with pytest.raises(NotOtlp):
        list(fields(data, FieldBudget(9), 0, 5))


@pytest.mark.parametrize(("budget", "fine"), [(3, True), (2, False)])
def test_budget_is_spent_field_by_field(budget: int, fine: bool) -> None:
    outcome = None
    try:
        walked(b"\x0a\x00" * 3, budget)
    except TooMuchWork as error:
        outcome = error

    assert (outcome is None) is fine
