"""Counts the messages in a MetricsData without making an object of each.

Every message takes a reader two bytes of input and up to a hundred of memory. Here they are counted level by
level: the messages of one type, concatenated, are one message of that type to protobuf, whose C parser then
lists their parts as bytes.
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf.descriptor import Descriptor
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp.metrics_data import parsed
from odradek.otlp.private_messages import message_classes
from odradek.wire.compression import TooLarge

MAX_MESSAGES: Final = 1_500_000
"""16 MiB of data points with two attributes have 1.2 million. So many take a reader up to 70 ms, in which no
other thread of Python runs, and 150 MB."""

Parts = dict[str, tuple[int, str]]


def parts_by_type(whole: Descriptor) -> dict[str, Parts]:
    """The message fields of ``whole`` and of all types in it: number and type by name, by type."""
    found: dict[str, Parts] = {}
    left = [whole]
    while left:
        message = left.pop()
        if message.name not in found:
            parts = [(each, each.message_type) for each in message.fields if each.message_type is not None]
            found[message.name] = {field.name: (field.number, part.name) for field, part in parts}
            left += [part for _, part in parts]
    return found


PARTS: Final = parts_by_type(MetricsData.DESCRIPTOR)
CLASSES: Final = message_classes(
    "odradek.message_count",
    {
        message: {name: (number, "bytes*") for name, (number, _) in parts.items()}
        for message, parts in PARTS.items()
    },
)
PARSE: Final[dict[str, Any]] = {message: each.FromString for message, each in CLASSES.items()}


def check_messages(data: bytes) -> None:
    """Check that the messages in a MetricsData are not too many.

    Raises:
        TooLarge: They are.
        NotOtlp: The bytes are not a MetricsData.
    """
    number = 0
    levels = [(MetricsData.DESCRIPTOR.name, data)]
    while levels:
        message, content = levels.pop()
        found = parsed(PARSE[message], content)
        for name, (_, part) in PARTS[message].items():
            values = getattr(found, name)
            number += len(values)
            if number > MAX_MESSAGES:
                raise TooLarge(f"more than {MAX_MESSAGES} messages in one payload")
            if below := b"".join(values):
                levels.append((part, below))
