"""Streams: the identity that data points of a client instance have in common.

The identity leaves out everything that changes during a client's life: the labels that the host sets, the
client's own labels of KIP-714, the scope's version, descriptions and temporality.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Mapping
from enum import IntEnum
from typing import Final, Generic, NamedTuple, TypeVar

from opentelemetry.proto.common.v1.common_pb2 import KeyValue, KeyValueList

from odradek.plugin.context_labels import CLIENT_LABELS, CLUSTER_NAME, CONTEXT_LABELS

NOT_IDENTITY: Final = frozenset((*CONTEXT_LABELS, *CLIENT_LABELS, CLUSTER_NAME))
VALUE_BYTES: Final = 250
"""Approximate memory of a family or of attributes, without their texts."""
LOWER_HALF: Final = 0xFFFF_FFFF
Value = TypeVar("Value", bound=Hashable)


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


StreamKey = int
"""The number of an identity: that of its family in the upper half, that of its attributes in the lower."""

Family = tuple[bytes, str, str, str, int]
"""An identity without the attributes of the data point."""


class Numbered(Generic[Value]):
    """Values by number, with counts of their users.

    A number without users becomes free in `forget_unused`, and not before, because the push that is being
    converted may use it.
    """

    def __init__(self, size_of: Callable[[Value], int]) -> None:
        """Make a table without values.

        Args:
            size_of: The length of a value's texts.
        """
        self.size_of = size_of
        self.numbers: dict[Value, int] = {}
        self.values: list[Value | None] = []
        self.users = array("Q")
        self.free: list[int] = []
        self.unused: list[int] = []
        """Numbers that had no user at some time since the last `forget_unused`."""
        self.held_bytes = 0

    def number(self, value: Value) -> int:
        """The number of a value. `forget_unused` frees it unless it has a user by then."""
        found = self.numbers.get(value)
        if found is None:
            found = self.free.pop() if self.free else len(self.values)
            if found == len(self.values):
                self.values.append(value)
                self.users.append(0)
            self.values[found] = value
            self.numbers[value] = found
            self.unused.append(found)
        return found

    def value(self, number: int) -> Value:
        found = self.values[number]
        assert found is not None, "a number without a value"
        return found

    def use(self, number: int) -> None:
        """Count one more user."""
        if not self.users[number]:
            self.held_bytes += self.bytes_of(number)
        self.users[number] += 1

    def release(self, number: int) -> None:
        """Count one user fewer."""
        self.users[number] -= 1
        if not self.users[number]:
            self.held_bytes -= self.bytes_of(number)
            self.unused.append(number)

    def bytes_of(self, number: int) -> int:
        """Approximate memory of a value."""
        return VALUE_BYTES + self.size_of(self.value(number))

    def forget_unused(self) -> None:
        """Forget values without users."""
        for number in self.unused:
            value = self.values[number]
            if value is not None and not self.users[number]:
                del self.numbers[value]
                self.values[number] = None
                self.free.append(number)
        self.unused.clear()


class StreamKeys:
    """All keys in use. The series of many clients have few names, and few attributes: each is stored once."""

    def __init__(self) -> None:
        self.families: Numbered[Family] = Numbered(lambda family: sum(map(len, family[:4])))
        self.attributes: Numbered[bytes] = Numbered(len)
        self.latest: tuple[array[int] | None, Mapping[StreamKey, int]] = (None, {})

    @property
    def held_bytes(self) -> int:
        """Approximate memory of what the keys stand for."""
        return self.families.held_bytes + self.attributes.held_bytes

    def key(self, identity: Identity) -> StreamKey:
        """The key of an identity. It is kept if it has a user before `forget_unused`."""
        resource, scope, name, unit, kind, attributes = identity
        family = self.families.number((resource, scope, name, unit, kind))
        return family << 32 | self.attributes.number(attributes)

    def identity(self, key: StreamKey) -> Identity:
        """The identity that a key stands for."""
        return Identity(*self.families.value(key >> 32), self.attributes.value(key & LOWER_HALF))

    def positions_of(self, keys: array[int]) -> Mapping[StreamKey, int]:
        """The position of each key, kept until other keys are asked for."""
        if self.latest[0] is not keys:
            self.latest = keys, {key: position for position, key in enumerate(keys)}
        return self.latest[1]

    def new_bytes(self, key: StreamKey) -> int:
        """Approximate memory that a user of the key would add."""
        family, attributes = key >> 32, key & LOWER_HALF
        added = 0 if self.families.users[family] else self.families.bytes_of(family)
        return added if self.attributes.users[attributes] else added + self.attributes.bytes_of(attributes)

    def text_bytes(self, key: StreamKey) -> int:
        """Approximate length of all texts of an identity."""
        family, attributes = key >> 32, key & LOWER_HALF
        return self.families.size_of(self.families.value(family)) + len(self.attributes.value(attributes))

    def use(self, keys: Iterable[StreamKey]) -> None:
        """Count one more user of each key."""
        for key in keys:
            self.families.use(key >> 32)
            self.attributes.use(key & LOWER_HALF)

    def release(self, keys: Iterable[StreamKey]) -> None:
        """Count one user fewer of each key."""
        for key in keys:
            self.families.release(key >> 32)
            self.attributes.release(key & LOWER_HALF)

    def forget_unused(self) -> None:
        """Forget identities without users. Keys that were made and not used become invalid."""
        self.families.forget_unused()
        self.attributes.forget_unused()


def canonical(attributes: Iterable[KeyValue], without: frozenset[str] = frozenset()) -> bytes:
    """Attributes in the order of their keys; of a repeated key the last value counts."""
    found = {each.key: each for each in attributes if each.key not in without}
    if not found:
        return b""
    return KeyValueList(values=[found[key] for key in sorted(found)]).SerializeToString(deterministic=True)
