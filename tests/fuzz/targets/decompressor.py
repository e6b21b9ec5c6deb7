"""Compressed bodies: the first byte chooses the codec."""

from __future__ import annotations

import random
from collections.abc import Iterator

from odradek.wire.compression import Codec, compress, decompress
from odradek.wire.errors import WireError

MAX_BYTES = 65_536


def seeds() -> Iterator[bytes]:
    """Bodies that shrink well, badly, to nothing, and beyond the bound."""
    bodies = (b"", b"telemetry " * 50, random.Random(1).randbytes(300), bytes(100_000))
    for codec in Codec:
        for body in bodies:
            yield bytes((codec,)) + compress(codec, body)


def check(data: bytes) -> None:
    """Decompress within the bound."""
    if not data:
        return
    try:
        content = decompress(data[0] % (len(Codec) + 1), data[1:], MAX_BYTES)
    except WireError:
        return
    assert len(content) <= MAX_BYTES
