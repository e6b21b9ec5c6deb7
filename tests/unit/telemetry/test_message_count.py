"""Messages of a payload are counted at every level, without an object for each."""

from __future__ import annotations

from typing import Final

import pytest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp import NotOtlp, delimited
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.telemetry import message_count
from odradek.telemetry.message_count import check_messages
from odradek.telemetry.payload import COUNT_FIRST_BYTES, label
from odradek.wire.compression import TooLarge

MOST: Final = 200


def nested(depth: int, content: bytes) -> bytes:
    for _ in range(depth):
        content = delimited(0x2A, delimited(0x0A, content))
    return content


def point(content: bytes) -> bytes:
    return delimited(0x0A, delimited(0x12, delimited(0x12, delimited(0x2A, content))))


EMPTY: Final = b"\x0a\x00" * (MOST + 1)
SHAPES: Final = {
    "ResourceMetrics": EMPTY,
    "ScopeMetrics": delimited(0x0A, b"\x12\x00" * MOST),
    "ScopeMetrics of many": delimited(0x0A, b"\x12\x00" * (MOST // 4)) * 4,
    "Metrics": delimited(0x0A, delimited(0x12, b"\x12\x00" * MOST)),
    "attributes of a Resource": delimited(0x0A, delimited(0x0A, EMPTY)),
    "points": point(EMPTY),
    "attributes of points": point(delimited(0x0A, b"\x3a\x00" * MOST)),
    "exemplars": point(delimited(0x0A, b"\x2a\x00" * MOST)),
    "a list": delimited(0x0A, delimited(0x0A, delimited(0x0A, delimited(0x12, delimited(0x2A, EMPTY))))),
    "a deep list": delimited(
        0x0A, delimited(0x0A, delimited(0x0A, delimited(0x12, nested(30, delimited(0x2A, EMPTY)))))
    ),
}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_count, "MAX_MESSAGES", MOST)


@pytest.mark.parametrize("shape", SHAPES)
def test_too_many_messages_are_refused_at_every_level(shape: str) -> None:
    with pytest.raises(TooLarge, match=f"more than {MOST} messages in one payload"):
        check_messages(SHAPES[shape])


def messages_in(message: Message) -> int:
    """Counted on objects."""
    number = 0
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            parts = [value] if isinstance(value, Message) else value
            number += len(parts) + sum(map(messages_in, parts))
    return number


@pytest.mark.parametrize("more", [0, 1])
def test_the_number_is_exact(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    data = MetricsData()
    for number in range(3):
        entry = data.resource_metrics.add()
        entry.resource.attributes.add(key="a").value.array_value.values.add().string_value = "x"
        metric = entry.scope_metrics.add().metrics.add(name="m")
        for _ in range(number):
            one = metric.histogram.data_points.add(bucket_counts=[1])
            one.attributes.add(key="k").value.kvlist_value.values.add(key="n").value.int_value = 1
            one.exemplars.add()
    monkeypatch.setattr(message_count, "MAX_MESSAGES", messages_in(data) - more)

    if more:
        with pytest.raises(TooLarge):
            check_messages(data.SerializeToString())
    else:
        check_messages(data.SerializeToString())


def test_bytes_that_are_not_otlp_are_refused() -> None:
    with pytest.raises(NotOtlp):
        check_messages(delimited(0x0A, delimited(0x12, b"\x12\x05")))


def test_large_payloads_are_counted_before_they_are_read() -> None:
    large = point(b"\x0a\x00" * COUNT_FIRST_BYTES)

    with pytest.raises(TooLarge):
        label(large, None, PayloadLimits())
