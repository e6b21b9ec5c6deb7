"""Reads OTLP/JSON of an export of metrics (OpenTelemetry Protocol specification, "JSON Protobuf Encoding").

It differs from protobuf's own JSON: trace and span ids are hexadecimal, enums are numbers, and the names of
fields are in lowerCamelCase only. Unknown fields are ignored.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final, NoReturn

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp.protobuf_bytes import NotOtlp

MAX_DEPTH: Final = 64
"""Nested messages. Protobuf's own parser refuses more than 100."""
HEXADECIMAL: Final = frozenset({"trace_id", "span_id"})
INTEGER: Final = re.compile(r"-?[0-9]{1,20}")
FLOAT: Final = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")
SPECIAL: Final = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
BOUNDS: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}

Reader = Callable[[Any], Any]
Filler = Callable[[Message, Any, int], None]


def metrics_of_json(text: bytes) -> bytes:
    """The bytes of the ``MetricsData`` or ``ExportMetricsServiceRequest`` that the text describes.

    The size of the text bounds time and memory: up to 25 times as much. The caller limits it.

    Raises:
        NotOtlp: The text is not JSON, or not a request of OTLP for metrics.
    """
    try:
        value = json.loads(text.decode(), parse_constant=no_constant)
    except RecursionError:
        raise NotOtlp("the JSON is nested too deeply") from None
    except ValueError as error:
        raise NotOtlp(f"the body is not JSON: {error}") from error
    data = MetricsData()
    fill(data, value, 0)
    return data.SerializeToString()


def no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number of JSON")


def fill(message: Message, value: Any, depth: int) -> None:
    """Set the fields of a message from a JSON object. Unknown fields and null are ignored.

    Raises:
        NotOtlp: A value does not fit its field, or messages are nested too deeply.
    """
    if not isinstance(value, dict):
        raise NotOtlp(f"{message.DESCRIPTOR.name} is not an object")
    if depth > MAX_DEPTH:
        raise NotOtlp(f"more than {MAX_DEPTH} messages are nested")
    plan = plan_of(message.DESCRIPTOR)
    for name, each in value.items():
        filler = plan.get(name)
        if filler is None or each is None:
            continue
        try:
            filler(message, each, depth)
        except (ValueError, TypeError, OverflowError) as error:
            raise NotOtlp(f"{message.DESCRIPTOR.name}.{name}: {error}") from error


@cache
def plan_of(descriptor: Descriptor) -> dict[str, Filler]:
    """By name in JSON: sets the field of a message."""
    return {field.json_name: filler_of(field) for field in descriptor.fields}


def filler_of(field: FieldDescriptor) -> Filler:
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return partial(fill_messages if field.is_repeated else fill_message, field.name)
    read = reader_of(field)
    return partial(fill_values if field.is_repeated else fill_value, field.name, read)


def fill_message(name: str, message: Message, value: Any, depth: int) -> None:
    inner = getattr(message, name)
    inner.SetInParent()  # an empty object is not an absent one
    fill(inner, value, depth + 1)


def fill_messages(name: str, message: Message, value: Any, depth: int) -> None:
    inner = getattr(message, name)
    for each in listed(value):
        fill(inner.add(), each, depth + 1)


def fill_value(name: str, read: Reader, message: Message, value: Any, _depth: int) -> None:
    setattr(message, name, read(value))


def fill_values(name: str, read: Reader, message: Message, value: Any, _depth: int) -> None:
    getattr(message, name).extend([read(each) for each in listed(value)])


def listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError("expected an array")
    return value


def reader_of(field: FieldDescriptor) -> Reader:
    """Returns the value of the field for a value of JSON; raises ValueError if it does not fit."""
    if field.cpp_type in BOUNDS:
        least, most = BOUNDS[field.cpp_type]
        return partial(integer, least, most)
    if field.cpp_type == FieldDescriptor.CPPTYPE_DOUBLE:
        return number
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return boolean
    if field.type == FieldDescriptor.TYPE_BYTES:
        return hexadecimal if field.name in HEXADECIMAL else base64_bytes
    return text_of


def integer(least: int, most: int, value: Any) -> int:
    """A whole number, also as text."""
    if (isinstance(value, str) and INTEGER.fullmatch(value)) or (
        isinstance(value, float) and value.is_integer()
    ):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("expected a whole number")
    if not least <= value <= most:
        raise ValueError("the number is out of range")
    return value


def number(value: Any) -> float:
    """A number, also as text, which NaN and infinities need to be."""
    if isinstance(value, str):
        if value in SPECIAL:
            return SPECIAL[value]
        if not FLOAT.fullmatch(value):
            raise ValueError("expected a number")
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("expected a number")
    if not math.isfinite(found := float(value)):
        raise ValueError("the number is out of range")
    return found


def boolean(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("expected a string")
    return value


def hexadecimal(value: Any) -> bytes:
    try:
        return binascii.unhexlify(text_of(value))
    except binascii.Error:
        raise ValueError("expected hexadecimal digits") from None


def base64_bytes(value: Any) -> bytes:
    """Bytes in base64, standard or for URLs, with or without padding."""
    text = text_of(value).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except binascii.Error:
        raise ValueError("expected base64") from None
