"""OTLP attributes as canonical JSON: sorted keys, no spaces, exact numbers, bytes as base64.

Numbers that JSON lacks (NaN and the infinities) are text. Of a repeated key the last value counts.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue


def canonical_json(attributes: Iterable[KeyValue]) -> str:
    return json_text({attribute.key: plain(attribute.value) for attribute in attributes})


def json_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain(value: AnyValue) -> Any:
    """A value for Python's JSON; None if the attribute has none."""
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    found = getattr(value, kind)
    if kind == "double_value":
        return plain_number(found)
    if kind == "bytes_value":
        return base64.b64encode(found).decode()
    if kind == "array_value":
        return [plain(item) for item in found.values]
    if kind == "kvlist_value":
        return {item.key: plain(item.value) for item in found.values}
    return found


def plain_number(value: float) -> float | str:
    """A number, or its name if JSON lacks it."""
    return value if math.isfinite(value) else str(value)


def promoted(attributes: Iterable[KeyValue], names: tuple[str, ...]) -> tuple[str | None, ...]:
    """The attributes that have columns of their own, as text; None for missing ones."""
    found = {attribute.key: plain(attribute.value) for attribute in attributes if attribute.key in names}
    return tuple(as_text(found.get(name)) for name in names)


def as_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json_text(value)
