"""The partition of a key, as Kafka's Java producer chooses it (BuiltInPartitioner.java, Utils.murmur2)."""

from __future__ import annotations

SEED = 0x9747B28C
FACTOR = 0x5BD1E995
MASK = 0xFFFFFFFF
POSITIVE = 0x7FFFFFFF


def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a key in a topic with this many partitions."""
    return (murmur2(key) & POSITIVE) % partitions


def murmur2(data: bytes) -> int:
    """The 32-bit MurmurHash2 with Kafka's seed, unsigned."""
    code = SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * FACTOR & MASK
        word = (word ^ word >> 24) * FACTOR & MASK
        code = (code * FACTOR & MASK) ^ word
    if whole < len(data):
        code = (code ^ int.from_bytes(data[whole:], "little")) * FACTOR & MASK
    code = (code ^ code >> 13) * FACTOR & MASK
    return code ^ code >> 15
