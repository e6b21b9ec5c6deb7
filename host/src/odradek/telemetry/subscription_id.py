"""The subscription id: by it a client and a broker recognize the same subscription.

All brokers of a cluster must compute the same id, because a client may ask one and push to another.
Kafka hashes the text of a ``java.util.HashSet``, so its iteration order is part of the protocol in a
cluster of both kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import crc32c

MIN_CAPACITY = 16
"""Buckets of a new java.util.HashSet."""
TREEIFY_LENGTH = 8
MIN_TREEIFY_CAPACITY = 64
"""A full bucket of a smaller table doubles the table (HashMap.MIN_TREEIFY_CAPACITY)."""


def string_hash(text: str) -> int:
    """``String.hashCode``, as an unsigned number, with its upper half folded in as HashMap does."""
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for index in range(0, len(units), 2):
        code = (31 * code + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return code ^ code >> 16


def copy_capacity(size: int) -> int:
    """Buckets of a HashSet made from a collection of ``size`` elements."""
    wanted = max(int(size / 0.75) + 1, MIN_CAPACITY)
    return 1 << (wanted - 1).bit_length()


def hash_set_order(elements: Iterable[str], capacity: int = MIN_CAPACITY) -> list[str]:
    """The distinct elements in the order in which a HashSet gives them back, if added in the order given."""
    hashes: dict[str, int] = {}
    for element in elements:
        if element in hashes:
            continue
        code = string_hash(element)
        if capacity < MIN_TREEIFY_CAPACITY and neighbors(hashes, code, capacity) > TREEIFY_LENGTH - 1:
            capacity *= 2
        hashes[element] = code
        if len(hashes) > capacity * 0.75:
            capacity *= 2
    return sorted(hashes, key=lambda element: hashes[element] & (capacity - 1))


def neighbors(hashes: dict[str, int], code: int, capacity: int) -> int:
    """How many elements are in the bucket of ``code``."""
    return sum((code ^ other) & (capacity - 1) == 0 for other in hashes.values())


def subscription_checksum(metrics: Sequence[str], push_interval_ms: int) -> int:
    """CRC-32C of the set's text and the interval: the part of the id that all clients share."""
    text = f"[{', '.join(metrics)}]{push_interval_ms}"
    return crc32c.crc32c(text.encode())


def uuid_hash(raw: bytes) -> int:
    """``Uuid.hashCode``, unsigned: both halves, and their halves, folded onto each other."""
    folded = int.from_bytes(raw[:8], "big") ^ int.from_bytes(raw[8:], "big")
    return (folded >> 32) ^ (folded & 0xFFFFFFFF)


def subscription_id(checksum: int, client_instance_id: bytes) -> int:
    """The id of one client's subscription: a signed 32-bit number, 0 and below included."""
    unsigned = checksum ^ uuid_hash(client_instance_id)
    return unsigned - (1 << 32) if unsigned >> 31 else unsigned
