"""The end of a response that names the endpoints of leaders, rewritten exactly or within its old size.

The length of a streamed response was sent before its end is known, so the end must keep its size. An unknown
tagged field, which every client skips, fills up what a shorter end leaves over. If the new endpoints do not
fit, they are left out: they are a hint, and clients find the leader's address in Metadata.
"""

from __future__ import annotations

from odradek.gateway.addresses import Addresses
from odradek.gateway.rewriting.fields import Tags, require_end, tags_at
from odradek.gateway.rewriting.nodes import ENDPOINTS, NO_ENDPOINTS
from odradek.wire.errors import WireError
from odradek.wire.varint import varint

NODE_ENDPOINTS_TAG = 0
FILLERS = (126, 128)
"""Tags that no version of Kafka uses. A number of two bytes makes up for a size that takes two."""


def tagged_endpoints(tail: bytes, addresses: Addresses, keep_size: bool) -> bytes:
    """Rewrite the last tagged section of Produce and Fetch, where NodeEndpoints is tag 0.

    Raises:
        IndexError, WireError: The section does not parse.
    """
    if tail == b"\0":
        return tail
    tags, end = tags_at(tail, 0)
    require_end(tail, end)
    if not tags or tags[0][0] != NODE_ENDPOINTS_TAG:
        return tail
    content, end = ENDPOINTS.rewritten(tags[0][1], 0, addresses)
    require_end(tags[0][1], end)
    others = tags[1:]
    with_endpoints: Tags = others if content == NO_ENDPOINTS else [(NODE_ENDPOINTS_TAG, content), *others]
    if not keep_size:
        return section(with_endpoints)
    return fitted((b"", with_endpoints), (b"", others), size=len(tail))


def listed_endpoints(tail: bytes, addresses: Addresses, keep_size: bool) -> bytes:
    """Rewrite NodeEndpoints, a plain array, and the last tagged section of ShareFetch and ShareAcknowledge.

    Raises:
        IndexError, WireError: The fields do not parse.
    """
    if tail == b"\x01\0":
        return tail
    endpoints, at = ENDPOINTS.rewritten(tail, 0, addresses)
    tags, end = tags_at(tail, at)
    require_end(tail, end)
    if not keep_size:
        return endpoints + section(tags)
    return fitted((endpoints, tags), (NO_ENDPOINTS, tags), size=len(tail))


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
