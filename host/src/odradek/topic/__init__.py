"""The public format of the telemetry topic: keys, headers and values of its records.

Importing this room is cheap: the names that need a library are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record, encode_headers, record_key
from odradek.topic.topic_format import TopicFormat

if TYPE_CHECKING:
    from odradek.topic.topic_messages import decode_message

__all__ = [
    "MalformedTelemetry",
    "TopicFormat",
    "decode_message",
    "decode_record",
    "encode_headers",
    "record_key",
]

ON_FIRST_USE = {"decode_message": "topic_messages"}
"""The module of each name that needs protobuf, or the libraries of compression."""


def __getattr__(name: str) -> Any:
    if name not in ON_FIRST_USE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{ON_FIRST_USE[name]}"), name)
