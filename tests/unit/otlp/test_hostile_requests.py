"""Requests of OTLP that cost much for their size: what is looked at is bounded, whatever is in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import pytest

from odradek.otlp import (
    NotOtlp,
    Sender,
    data_points,
    delimited,
    otlp_records,
    protobuf_fields,
    sender_records,
)
from odradek.otlp.sender_records import MAX_COUNTED_BYTES, MAX_FIELDS, MAX_RESOURCE_BYTES

SIZE: Final = 4 << 20
RESOURCE: Final = delimited(
    0x0A, delimited(0x0A, delimited(0x0A, b"a") + delimited(0x12, delimited(0x0A, b"x")))
)


def filled(unit: bytes, size: int = SIZE) -> bytes:
    """As many of them as fit."""
    return unit * (size // len(unit))


def entry(*parts: bytes) -> bytes:
    return delimited(0x0A, b"".join(parts))


def nested(depth: int) -> bytes:
    """A value in a list in a list ..."""
    found = b""
    for _ in range(depth):
        found = delimited(0x2A, delimited(0x0A, found))
    return found


SHAPES: Final = {
    "equal Resources": filled(entry(RESOURCE)),
    "empty Resources": filled(entry(delimited(0x0A, b""))),
    "empty ResourceMetrics": filled(entry()),
    "different Resources": b"".join(entry(delimited(0x0A, b"\x08" + bytes([n]))) for n in range(128)) * 8_000,
    "empty ScopeMetrics": entry(RESOURCE, filled(delimited(0x12, b""))),
    "empty Metrics": entry(RESOURCE, delimited(0x12, filled(delimited(0x12, b"")))),
    "empty points": entry(RESOURCE, delimited(0x12, delimited(0x12, delimited(0x2A, filled(b"\x0a\x00"))))),
    "empty attributes": entry(delimited(0x0A, filled(b"\x0a\x00"))),
    "empty attributes below the limit": entry(delimited(0x0A, filled(b"\x0a\x00", MAX_RESOURCE_BYTES))),
    "attributes": entry(delimited(0x0A, filled(RESOURCE[2:], MAX_RESOURCE_BYTES))),
    "one long attribute": entry(delimited(0x0A, delimited(0x0A, bytes(SIZE)))),
    "a list of nothing": entry(
        delimited(0x0A, delimited(0x0A, delimited(0x12, delimited(0x2A, filled(b"\x0a\x00", 1_000_000)))))
    ),
    "deep lists": filled(entry(delimited(0x0A, delimited(0x0A, delimited(0x12, nested(90)))))),
    "schema URLs": entry(RESOURCE, filled(delimited(0x1A, b""))),
    "unknown fields": filled(b"\x20\x00"),
    "unknown fields of ten bytes": filled(b"\x20" + b"\xff" * 9 + b"\x01"),
    "unknown fields in an entry": entry(RESOURCE, filled(b"\x20\x00")),
}


@pytest.fixture
def parsed_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what protobuf parses: it cannot be interrupted."""
    sizes: list[int] = []

    def counted(parse: Callable[[bytes], Any], data: bytes) -> Any:
        sizes.append(len(data))
        return parse(data)

    monkeypatch.setattr(sender_records, "parsed", counted)
    return sizes


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the fields that are looked at one by one."""
    numbers: list[int] = []
    original = protobuf_fields.fields

    def counted(data: bytes, budget: Any, *bounds: int) -> Iterator[Any]:
        for found in original(data, budget, *bounds):
            numbers.append(found[0])
            yield found

    monkeypatch.setattr(sender_records, "fields", counted)
    return numbers


@pytest.mark.parametrize("shape", SHAPES)
def test_the_work_of_a_request_is_bounded(shape: str, parsed_bytes: list[int], looked_at: list[int]) -> None:
    try:
        records = otlp_records(SHAPES[shape], Sender(), 1, 60_000)
    except NotOtlp:
        records = []

    assert len(looked_at) <= 2 * MAX_FIELDS
    assert max(parsed_bytes, default=0) <= MAX_RESOURCE_BYTES
    assert sum(len(each.payload.data) for each in records) <= len(SHAPES[shape])


def test_many_equal_resources_are_refused_with_the_reason() -> None:
    with pytest.raises(NotOtlp, match=f"more than {MAX_FIELDS} ResourceMetrics or attributes in one request"):
        otlp_records(SHAPES["equal Resources"], Sender(), 1, 60_000)


def test_a_resource_may_have_a_megabyte() -> None:
    (record,) = otlp_records(
        entry(delimited(0x0A, delimited(0x0A, delimited(0x0A, b"k" * 1_000_000)))), Sender(), 1, 60_000
    )

    assert len(record.payload.data) > 1_000_000
    with pytest.raises(NotOtlp, match="at most 1048576 are allowed"):
        otlp_records(SHAPES["one long attribute"], Sender(), 1, 60_000)


def test_points_of_a_large_payload_are_not_counted(parsed_bytes: list[int]) -> None:
    assert data_points(SHAPES["empty points"]) == 0
    assert data_points(entry(delimited(0x12, delimited(0x12, delimited(0x2A, b"\x0a\x00" * 5))))) == 5
    assert max(parsed_bytes) <= MAX_COUNTED_BYTES
