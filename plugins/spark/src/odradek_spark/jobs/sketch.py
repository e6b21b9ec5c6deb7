"""HLL sketches of texts, in the format that Spark's ``hll_sketch_estimate`` and ``hll_union_agg`` read.

It is the compact image of Apache DataSketches: a few texts as a list, more as a set, many as one byte
for each register. The library itself is not used, because it has no wheels for new versions of Python.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

import mmh3
import numpy as np
import numpy.typing as npt

LG_K = 10
"""1024 registers: the number of texts within 3.3 %, in at most 1 kB."""
SEED = 9001
"""DataSketches' seed."""
KEY_BITS = 26
"""Lower bits of a coupon, the address; the upper bits are the register's value."""
LISTED, IN_SET = 7, 96
"""Limits of coupons in a list, and in a set: three quarters of an eighth of the registers."""
LIST, SET, HLL = 0, 1, 2
HLL_8 = 2 << 2
"""The kind of sketch, beside its mode: eight bits for a register."""
EMPTY, COMPACT, OUT_OF_ORDER = 4, 8, 16
HEAD = struct.Struct("<8B")
NOTHING = np.empty(0, np.uint32)
SERIAL_VERSION, FAMILY = 1, 7


Coupons = npt.NDArray[np.uint32]
Registers = npt.NDArray[np.uint8]


def sketch(texts: Iterable[str]) -> bytes:
    """The sketch of some texts."""
    return image(np.array(sorted({coupon(each) for each in texts if each}), np.uint32))


def union(sketches: Sequence[bytes]) -> bytes:
    """The sketch of all texts of some sketches.

    Raises:
        ValueError: One of them is not such a sketch.
    """
    if len(sketches) == 1:
        return sketches[0]
    found = [parsed(each) for each in sketches]
    coupons = np.unique(np.concatenate([each for each in found if each.dtype == np.uint32] or [NOTHING]))
    dense = [each for each in found if each.dtype == np.uint8]
    if not dense:
        return image(coupons)
    return dense_image(np.maximum.reduce([*dense, registers_of(coupons)]))


def parsed(found: bytes) -> Coupons | Registers:
    """The coupons of a sketch, or its registers if it has these.

    Sketches that Spark wrote have room for more coupons, which is zero.

    Raises:
        ValueError: It is no sketch of 1024 registers of eight bits.
    """
    words, version, family, lg_k, _, _, _, mode = HEAD.unpack_from(found)
    if (version, family, lg_k) != (SERIAL_VERSION, FAMILY, LG_K) or mode & ~3 != HLL_8:
        raise ValueError(f"not a sketch of {1 << LG_K} registers of eight bits: {found[:8].hex()}")
    if mode & 3 == HLL:
        return np.frombuffer(found, np.uint8, 1 << LG_K, 4 * words)
    coupons = np.frombuffer(found, np.uint32, offset=4 * words)
    return coupons[coupons > 0]


def image(coupons: Coupons) -> bytes:
    """The format of a sketch with these coupons, which are distinct and in order."""
    count = len(coupons)
    if count <= LISTED:
        flags = COMPACT | (0 if count else EMPTY)
        return HEAD.pack(2, SERIAL_VERSION, FAMILY, LG_K, 3, flags, count, LIST | HLL_8) + coupons.tobytes()
    if count <= IN_SET:
        lg_size = max(5, (-(-4 * count // 3) - 1).bit_length())
        head = HEAD.pack(3, SERIAL_VERSION, FAMILY, LG_K, lg_size, COMPACT, 0, SET | HLL_8)
        return head + struct.pack("<I", count) + coupons.tobytes()
    return dense_image(registers_of(coupons))


def coupon(text: str) -> int:
    """The register of a text, and the value for it."""
    low, high = mmh3.hash64(text.encode(), SEED, x64arch=True, signed=False)
    zeros = 64 - high.bit_length()
    return (min(zeros, 62) + 1) << KEY_BITS | low & (1 << KEY_BITS) - 1


def registers_of(coupons: Coupons) -> Registers:
    """The largest value of each register."""
    registers = np.zeros(1 << LG_K, np.uint8)
    np.maximum.at(registers, coupons & (1 << LG_K) - 1, (coupons >> KEY_BITS).astype(np.uint8))
    return registers


def dense_image(registers: Registers) -> bytes:
    """The format of a sketch with all registers.

    It is marked as out of order: its estimate comes from the registers alone, as after a union.
    """
    parts = np.exp2(-registers.astype(np.float64))
    is_low = registers < 32
    empty = int((registers == 0).sum())
    head = HEAD.pack(10, SERIAL_VERSION, FAMILY, LG_K, 0, COMPACT | OUT_OF_ORDER, 0, HLL | HLL_8)
    sums = struct.pack("<dddII", 0.0, parts[is_low].sum(), parts[~is_low].sum(), empty, 0)
    return head + sums + registers.tobytes()
