"""Messages of every API in their first and last version: two bytes choose the message, the rest is its
bytes.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from odradek.wire.codec import decode, encode, reader
from odradek.wire.errors import WireError
from random_messages import MessageMaker, declared_versions

CASES = [
    (cls, version)
    for cls, version in declared_versions()
    if version in {cls.VERSIONS.first, cls.VERSIONS.last}  # instrumenting a reader takes a moment
]
CHOICE_BYTES = 2


def seeds() -> Iterator[bytes]:
    """A message of each kind."""
    for number, (cls, version) in enumerate(CASES):
        message = MessageMaker(random.Random(number)).message(cls, version)
        yield number.to_bytes(CHOICE_BYTES) + encode(message, version)


def check(data: bytes) -> None:
    """Read the message; write what was read and read it again."""
    if len(data) < CHOICE_BYTES:
        return
    cls, version = CASES[int.from_bytes(data[:CHOICE_BYTES]) % len(CASES)]
    try:
        message, end = reader(cls, version)(data, CHOICE_BYTES)
    except WireError:
        return
    assert end <= len(data)
    again = encode(message, version)
    # Encoded once more, because a NaN is not equal to itself.
    assert encode(decode(cls, version, again), version) == again
