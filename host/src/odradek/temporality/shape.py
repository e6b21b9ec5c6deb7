"""Shapes: the streams of a client instance, shared by all instances with the same streams.

A million series of equal clients then need no keys of their own: an instance has arrays, and its shape tells
which stream is at which index. A shape never changes; an instance with a new stream moves to another shape.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Final

from odradek.temporality.stream_key import Identity, StreamKey, StreamKeys

DIGEST_BYTES: Final = 16
SLOT_BYTES: Final = 9
"""Approximate memory of a stream in a shape."""
SHAPE_BYTES: Final = 500
"""Approximate memory of a shape without streams."""
LENGTH: Final = struct.Struct("<I")
NO_DIGEST: Final = b""


class BadState(ValueError):
    """Stored state that cannot be read.

    Args:
        reason: What is wrong.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)


class Shape:
    """The streams of some instances, in the order of their arrays."""

    __slots__ = ("digest", "keys", "known", "number", "users")

    def __init__(self, keys: array[int], number: int, known: StreamKeys) -> None:
        self.keys = keys
        """The keys of the streams, 8 bytes each. A client whose series have labels of their own has a shape
        of its own, and then a series costs no more than this here."""
        self.known = known
        self.number = number
        self.users = 0
        self.digest = NO_DIGEST
        """The name in stored states, made when it is first needed."""

    @property
    def held_bytes(self) -> int:
        """Approximate size in memory."""
        return SHAPE_BYTES + SLOT_BYTES * len(self.keys)

    @property
    def text_bytes(self) -> int:
        """Approximate size as it is stored: each stream with all of its texts, however often they occur."""
        return sum(map(self.known.text_bytes, self.keys))

    @property
    def positions(self) -> Mapping[StreamKey, int]:
        """The position of each stream. Only the last mapping is kept, because few pushes need one."""
        return self.known.positions_of(self.keys)

    @property
    def identities(self) -> list[Identity]:
        """The identity of each stream."""
        return [self.known.identity(key) for key in self.keys]

    def stored(self) -> bytes:
        """The streams, to be read by `stored_identities`."""
        parts: list[bytes] = []
        for resource, scope, name, unit, kind, attributes in self.identities:
            parts.append(bytes((kind,)))
            for text in (resource, scope.encode(), name.encode(), unit.encode(), attributes):
                parts += (LENGTH.pack(len(text)), text)
        return b"".join(parts)

    def name(self) -> bytes:
        """The digest, which is equal for equal streams in equal order."""
        if not self.digest:
            self.digest = blake2b(self.stored(), digest_size=DIGEST_BYTES).digest()
        return self.digest


class Shapes:
    """All shapes in use."""

    def __init__(self, keys: StreamKeys) -> None:
        self.keys = keys
        self.by_keys: dict[bytes, Shape] = {}
        """By a hash of the keys."""
        self.made = 0
        self.held_bytes = 0
        self.empty = self.of([])
        self.use(self.empty)

    def of(self, keys: Iterable[StreamKey]) -> Shape:
        """The shape of these streams. `use` keeps a new one."""
        packed = array("Q", keys)
        found = self.by_keys.get(hash_of(packed))
        if found is None:
            self.made += 1
            found = Shape(packed, self.made, self.keys)
        return found

    def use(self, shape: Shape) -> None:
        """Count one more user."""
        if not shape.users:
            self.by_keys[hash_of(shape.keys)] = shape
            self.held_bytes += shape.held_bytes
            self.keys.use(shape.keys)
        shape.users += 1

    def release(self, shape: Shape) -> None:
        """Count one user fewer, and forget a shape without users."""
        shape.users -= 1
        if not shape.users:
            del self.by_keys[hash_of(shape.keys)]
            self.held_bytes -= shape.held_bytes
            self.keys.release(shape.keys)


def hash_of(keys: array[int]) -> bytes:
    return blake2b(keys, digest_size=DIGEST_BYTES).digest()


def stored_identities(stored: bytes) -> list[Identity]:
    """The streams of a stored shape.

    Raises:
        BadState: The bytes are not a stored shape.
    """
    found, position = [], 0
    try:
        while position < len(stored):
            kind, texts = stored[position], []
            position += 1
            for _ in range(5):
                (length,) = LENGTH.unpack_from(stored, position)
                position += LENGTH.size + length
                if position > len(stored):
                    raise BadState("a stored shape ends inside a stream")
                texts.append(stored[position - length : position])
            resource, scope, name, unit, attributes = texts
            found.append(Identity(resource, scope.decode(), name.decode(), unit.decode(), kind, attributes))
    except (struct.error, UnicodeDecodeError) as error:
        raise BadState(f"a stored shape is damaged: {error}") from error
    return found
