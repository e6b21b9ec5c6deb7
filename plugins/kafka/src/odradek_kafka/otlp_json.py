"""OTLP/JSON of a serialized MetricsData (OpenTelemetry Protocol specification, "JSON Protobuf Encoding").

It differs from protobuf's own JSON in two points: trace and span ids are hexadecimal, and enums are numbers.
Otherwise it is equal: lowerCamelCase, 64-bit integers as text, other bytes in base64, NaN and infinities as
text. `google.protobuf.json_format` takes half as long again, and its output would need corrections.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

HEXADECIMAL: Final = frozenset({"trace_id", "span_id"})
LONG: Final = frozenset(
    {
        FieldDescriptor.CPPTYPE_INT64,
        FieldDescriptor.CPPTYPE_UINT64,
    }
)
FLOATING: Final = frozenset({FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT})

Encoder = Callable[[Any], Any]
ENCODE_JSON: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def otlp_json(data: bytes) -> bytes:
    """Encode as JSON text in UTF-8, without white space.

    Raises:
        google.protobuf.message.DecodeError: The bytes are not a MetricsData.
    """
    return ENCODE_JSON(tree(MetricsData.FromString(data))).encode()


def tree(message: Message) -> dict[str, Any]:
    """A message as a value for `json`: the fields that are set, in the order of their numbers."""
    plan = plan_of(message.DESCRIPTOR)
    found = {}
    for field, value in message.ListFields():
        name, encode = plan[field.number]
        found[name] = encode(value) if encode is not None else value
    return found


@cache
def plan_of(descriptor: Descriptor) -> dict[int, tuple[str, Encoder | None]]:
    """By field number: the name in JSON and the encoder of the value; None leaves the value unchanged."""
    return {field.number: (field.json_name, encoder_of(field)) for field in descriptor.fields}


def encoder_of(field: FieldDescriptor) -> Encoder | None:
    one = single_encoder(field)
    if not field.is_repeated:
        return one
    return list if one is None else lambda values: [one(value) for value in values]


def single_encoder(field: FieldDescriptor) -> Encoder | None:
    """The encoder of one value of the field; None leaves it unchanged."""
    if field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE:
        return tree
    if field.cpp_type in LONG:
        return str
    if field.cpp_type in FLOATING:
        return number
    if field.type == FieldDescriptor.TYPE_BYTES:
        return bytes.hex if field.name in HEXADECIMAL else base64_text
    return None


def number(value: float) -> float | str:
    """A number, or text for NaN and infinities, which JSON lacks."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()
