"""Messages with random contents, for tests of every message.

Values favor edge cases: null, empty, smallest, largest, and sizes whose varint takes two bytes. Fields that a
version does not have keep their defaults, so that a message equals its decoded copy.
"""

from __future__ import annotations

import importlib
import pkgutil
import random
import struct
from dataclasses import dataclass
from functools import cache
from typing import Any

from odradek.wire import messages
from odradek.wire.error_code import ErrorCode
from odradek.wire.layout import ArrayOf, Field, Kind, StructOf
from odradek.wire.layout import layout as made_layout
from odradek.wire.types import NIL_UUID, Blob, Scalar

STRINGS = ("", "a", "topic-1", "caffè", "名前", "🪡", "x" * 127, "y" * 300)
BLOBS = (b"", b"\0", b"\xff" * 126, bytes(range(256)) * 3)
layout = cache(made_layout)
LAST_WELL_KNOWN = ErrorCode.SHARE_SESSION_LIMIT_REACHED
"""The last error code of Kafka 4.3, the limit of implementations that list them."""
LAST_MS = 253_402_300_799_000
"""The end of the year 9999, the limit of implementations with calendar types."""


def declared_messages() -> list[type[Any]]:
    """Every class with versions in ``odradek.wire.messages``."""
    found = []
    for info in pkgutil.iter_modules(messages.__path__):
        module = importlib.import_module(f"{messages.__name__}.{info.name}")
        found += [
            value for value in vars(module).values() if isinstance(value, type) and hasattr(value, "VERSIONS")
        ]
    return [cls for cls in found if cls.__name__ != "Versions"]


def declared_versions() -> list[tuple[type[Any], int]]:
    """Every message in every version."""
    return [
        (cls, version)
        for cls in declared_messages()
        for version in range(cls.VERSIONS.first, cls.VERSIONS.last + 1)
    ]


@dataclass(slots=True)
class MessageMaker:
    """Creates messages from a source of randomness."""

    source: random.Random
    well_known: bool = False
    """If True, use only known error codes and times within the calendar."""

    def message(self, cls: type, version: int) -> Any:
        """A message as it may arrive in ``version``."""
        return self.structure(layout(cls, version))

    def structure(self, shape: StructOf) -> Any:
        """A structure whose tagged fields often have their defaults."""
        values = {field.name: self.field(field) for field in shape.fields}
        values |= {field.name: self.field(field) for field in shape.tagged if self.source.random() < 0.6}
        return shape.cls(**values)

    def field(self, field: Field) -> Any:
        """A value, or null if allowed."""
        if field.nullable and self.source.random() < 0.25:
            return None
        return self.value(field.kind, field.name)

    def value(self, kind: Kind, name: str) -> Any:
        """A value that is not null."""
        if isinstance(kind, StructOf):
            return self.structure(kind)
        if isinstance(kind, ArrayOf):
            return [self.value(kind.element, name) for _ in range(self.count(kind.element))]
        if isinstance(kind, Scalar):
            return self.scalar(kind.format, name)
        if kind is Blob.UUID:
            return self.source.choice((NIL_UUID, self.source.randbytes(16)))
        return self.source.choice(STRINGS if kind is Blob.STRING else BLOBS)

    def count(self, element: Kind) -> int:
        """The number of elements: few, sometimes enough for a count of two bytes."""
        if isinstance(element, StructOf):
            return self.source.choice((0, 1, 1, 2, 3))
        return self.source.choice((0, 1, 2, 3, 130))

    def scalar(self, fixed: str, name: str) -> Any:
        """A number of the type."""
        if fixed == "?":
            return self.source.random() < 0.5
        if fixed == "d":
            return self.source.choice((0.0, -1.5, 1e300, float("inf"), self.source.random()))
        bits = 8 * struct.calcsize(">" + fixed)
        low, high = (0, 2**bits - 1) if fixed.isupper() else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if self.well_known and name.endswith("error_code"):
            return int(self.source.choice([code for code in ErrorCode if code <= LAST_WELL_KNOWN]))
        if self.well_known and (name.endswith("_ms") or "timestamp" in name):
            low, high = 0, min(high, LAST_MS)
        return self.source.choice((low, high, min(high, 1), self.source.randint(low, high)))
