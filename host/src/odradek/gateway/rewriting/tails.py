"""The end of a response that names the endpoints of leaders, rewritten within its old size.

The length of a streamed response was sent before its end is known, so the end must keep its size. An unknown
tagged field, which every client skips, fills up what a shorter end leaves over. If the new endpoints do not
fit, they are left out: they are a hint, and clients find the leader's address in Metadata.
"""

from __future__ import annotations

from odradek.gateway.rewriting.fields import Tags
from odradek.wire.errors import WireError
from odradek.wire.varint import varint

FILLERS = (126, 128)
"""Tags that no version of Kafka uses. A number of two bytes makes up for a size that takes two."""


def section(tags: Tags) -> bytes:
    """Return a tagged section."""
    return varint(len(tags)) + b"".join(tagged(number, content) for number, content in tags)


def tagged(number: int, content: bytes) -> bytes:
    return varint(number) + varint(len(content)) + content


def fitted(*choices: tuple[bytes, Tags], size: int) -> bytes:
    """Return the first of several ends, each a prefix and its tags, that can be given a size.

    Raises:
        WireError: None of them can, which takes lengths that are longer than they need be.
    """
    for prefix, tags in choices:
        exact = prefix + section(tags)
        if len(exact) == size:
            return exact
        room = size - len(prefix) - len(section([*tags, (0, b"")])) + len(tagged(0, b""))
        filler = filling(room, tags[-1][0] if tags else -1)
        if filler is not None:
            return prefix + section([*tags, filler])
    raise WireError(f"no end of {size} bytes")


def filling(room: int, last: int) -> tuple[int, bytes] | None:
    """Return a tag that follows tag ``last`` and takes ``room`` bytes; None if there is none."""
    for first in FILLERS:
        number = max(first, last + 1)
        content_bytes = room - len(varint(number)) - 1
        while content_bytes > 0 and len(tagged(number, bytes(content_bytes))) > room:
            content_bytes -= 1
        if content_bytes >= 0 and len(tagged(number, bytes(content_bytes))) == room:
            return number, bytes(content_bytes)
    return None
