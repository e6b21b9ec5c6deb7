"""Sums without loss: a total and its compensation, two doubles whose exact sum is the value (Neumaier).

Integers are exact far beyond 2^53, because both doubles together hold them.
"""

from __future__ import annotations

import math
import sys
from typing import Final

from odradek.wire.limits import INT64_MAX, INT64_MIN

EXACT: Final = 2.0**53
"""Up to here each integer is a double."""
LARGEST: Final = sys.float_info.max


def added(total: float, compensation: float, value: float) -> tuple[float, float]:
    """Total and compensation after adding a value. A sum that no double can hold is the largest double."""
    result = total + value
    if math.isinf(result):
        return math.copysign(LARGEST, result), 0.0
    if abs(total) >= abs(value):
        return result, compensation + ((total - result) + value)
    return result, compensation + ((value - result) + total)


def halves(value: float) -> tuple[float, float]:
    """A value as a double and the rest that the double cannot hold; only large integers have a rest."""
    near = float(value)
    return near, (float(value - int(near)) if isinstance(value, int) else 0.0)


def whole(total: float, compensation: float) -> int | None:
    """The sum as a 64-bit integer; None if it is not one."""
    if not (total.is_integer() and compensation.is_integer()):
        return None
    exact = int(total) + int(compensation)
    return exact if INT64_MIN <= exact <= INT64_MAX else None
