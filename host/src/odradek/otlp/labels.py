"""The labels of a client, encoded once as attributes of an OTLP Resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from odradek.otlp.protobuf_bytes import delimited
from odradek.otlp.protobuf_fields import FieldBudget, fields

ATTRIBUTES: Final = 0x0A
"""Resource.attributes, a repeated KeyValue: field 1."""
KEY: Final = 0x0A
VALUE: Final = 0x12
STRING_VALUE: Final = 0x0A


MAX_KEPT_BYTES: Final = 1024
"""A Resource larger than this is not remembered. Clients send less than 300 bytes."""


@dataclass(slots=True, eq=False)
class EncodedLabels:
    """Attributes ready to be appended to a Resource.

    The last Resource seen is remembered: a client sends the same one with every push.
    """

    keys: frozenset[bytes]
    encoded: bytes
    known: tuple[bytes, bytes] = (b"", b"")
    """The last Resource, and the same without the attributes that the labels replace."""

    def kept(self, resource: bytes, budget: FieldBudget) -> bytes:
        """A serialized Resource without the attributes that the labels replace.

        Raises:
            NotOtlp: ``resource`` is none.
            TooMuchWork: It has more attributes than the budget allows.
        """
        known, kept = self.known
        if resource != known:
            kept = without(resource, self.keys, budget)
            if len(resource) <= MAX_KEPT_BYTES:
                self.known = resource, kept
        return kept


def encode_labels(labels: Mapping[str, str]) -> EncodedLabels:
    """Labels as string attributes, in the order given.

    Raises:
        AttributeError, TypeError: A name or a value is not text.
        UnicodeEncodeError: It cannot be written as UTF-8.
    """
    parts = []
    for key, value in labels.items():
        any_value = delimited(STRING_VALUE, value.encode())
        parts.append(delimited(ATTRIBUTES, delimited(KEY, key.encode()) + delimited(VALUE, any_value)))
    return EncodedLabels(frozenset(key.encode() for key in labels), b"".join(parts))


def without(resource: bytes, keys: frozenset[bytes], budget: FieldBudget) -> bytes:
    """A serialized Resource less the attributes with these keys; the same object if it has none of them."""
    kept = []
    clash = False
    for tag, start, value, end in fields(resource, budget):
        if tag == ATTRIBUTES and attribute_key(resource, value, end, budget) in keys:
            clash = True
        else:
            kept.append(resource[start:end])
    return b"".join(kept) if clash else resource


def attribute_key(resource: bytes, start: int, end: int, budget: FieldBudget) -> bytes:
    """The key of a KeyValue; the last one if it has several, as protobuf reads it."""
    key = b""
    for tag, _, value, value_end in fields(resource, budget, start, end):
        if tag == KEY:
            key = resource[value:value_end]
    return key
