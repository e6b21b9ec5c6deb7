"""Streams: the identity that data points of a client instance have in common.

The identity leaves out everything that changes during a client's life: the labels that the host sets, the
client's own labels of KIP-714, the scope's version, descriptions and temporality.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final, NamedTuple

from opentelemetry.proto.common.v1.common_pb2 import KeyValue, KeyValueList

from odradek.plugin.context_labels import CLIENT_LABELS, CONTEXT_LABELS

NOT_IDENTITY: Final = frozenset((*CONTEXT_LABELS, *CLIENT_LABELS))
KEY_BYTES: Final = 400
"""Approximate memory of a key, without its texts."""


class Kind(IntEnum):
    """The kinds of streams. The numbers are in stored states."""

    COUNTER = 1
    """A monotonic sum."""
    SUM = 2
    GAUGE = 3
    HISTOGRAM = 4
    EXPONENTIAL_HISTOGRAM = 5


class Identity(NamedTuple):
    """The identity of a stream within a client instance."""

    resource: bytes
    """The attributes of the Resource that are no labels of host or client, canonically serialized."""
    scope: str
    name: str
    unit: str
    kind: int
    attributes: bytes
    """The attributes of the data point, canonically serialized."""


class StreamKey:
    """An identity, stored once for all clients that have the stream. Keys are equal only to themselves."""

    __slots__ = ("identity", "users")

    def __init__(self, identity: Identity) -> None:
        self.identity = identity
        self.users = 0

    @property
    def held_bytes(self) -> int:
        """Approximate size in memory."""
        identity = self.identity
        texts = len(identity.scope) + len(identity.name) + len(identity.unit)
        return KEY_BYTES + texts + len(identity.resource) + len(identity.attributes)


class StreamKeys:
    """All keys in use, by identity."""

    def __init__(self) -> None:
        self.by_identity: dict[Identity, StreamKey] = {}
        self.unused: dict[Identity, StreamKey] = {}
        """Keys of the current push that have no user yet."""
        self.held_bytes = 0

    def key(self, identity: Identity) -> StreamKey:
        """The key of an identity. It is stored as soon as it has a user."""
        found = self.by_identity.get(identity) or self.unused.get(identity)
        if found is None:
            found = self.unused[identity] = StreamKey(identity)
        return found

    def use(self, keys: Iterable[StreamKey]) -> None:
        """Count one more user of each key."""
        for key in keys:
            if not key.users:
                self.by_identity[key.identity] = key
                self.held_bytes += key.held_bytes
            key.users += 1

    def release(self, keys: Iterable[StreamKey]) -> None:
        """Count one user less of each key, and forget keys without users."""
        for key in keys:
            key.users -= 1
            if not key.users:
                del self.by_identity[key.identity]
                self.held_bytes -= key.held_bytes


def canonical(attributes: Iterable[KeyValue], without: frozenset[str] = frozenset()) -> bytes:
    """Attributes in the order of their keys; of a repeated key the last value counts."""
    found = {each.key: each for each in attributes if each.key not in without}
    if not found:
        return b""
    return KeyValueList(values=[found[key] for key in sorted(found)]).SerializeToString(deterministic=True)
