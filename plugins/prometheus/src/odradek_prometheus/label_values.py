"""Values of attributes as the text of labels."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, Final

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValueList

Labels = tuple[tuple[str, str], ...]
"""Names and values, none of them empty."""
VALUE_MAX_BYTES: Final = 1_024
LABELS_MAX_BYTES: Final = 8_192
"""Limit of the labels of a series. Each series of a page repeats them, so one push could become gigabytes."""


def attributes_of(serialized: bytes) -> list[tuple[str, str]]:
    """The attributes of an identity, in the order of their keys, as texts; without empty values."""
    if not serialized:
        return []
    values = KeyValueList.FromString(serialized).values
    return [(each.key, text) for each in values if (text := value_text(each.value))]


def value_text(value: AnyValue) -> str:
    """A value as text: arrays and maps as JSON, as OpenTelemetry's specification has it for Prometheus."""
    which = value.WhichOneof("value")
    if which == "string_value":
        return value.string_value
    if which is None:
        return ""
    plain = plain_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain, separators=(",", ":"), ensure_ascii=False)


def plain_value(value: AnyValue) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [plain_value(each) for each in value.array_value.values]
    if which == "kvlist_value":
        return {each.key: plain_value(each.value) for each in value.kvlist_value.values}
    if which == "bytes_value":
        return base64.b64encode(value.bytes_value).decode()
    return getattr(value, which) if which else None


def cut(text: str) -> str:
    """A value within its limit, cut on the border of a character; ``?`` for bytes that are not UTF-8."""
    if text.isascii():
        return text[:VALUE_MAX_BYTES]
    return text.encode("utf-8", "replace")[:VALUE_MAX_BYTES].decode("utf-8", "ignore")


def joined(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Labels by name; values of the same name joined with semicolons in their order, as Prometheus does."""
    found: dict[str, str] = {}
    for name, value in pairs:
        found[name] = f"{found[name]};{value}" if name in found else value
    return found
