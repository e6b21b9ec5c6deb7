"""The place of ``throttle_time_ms`` in responses.

It is the first field of nearly all responses, so its place follows the header. Versions before those listed
here lack the field: their clients are not read for a while, and are not told why. After Kafka 4.3.
"""

from __future__ import annotations

from typing import Final, NamedTuple

NEVER: Final = 1 << 15


class ThrottlePlace(NamedTuple):
    """The place in the responses of one API."""

    first: int
    """The first version with the field."""
    flexible: int = NEVER
    """The first version whose response header has tags."""
    offset: int = 0
    """From the end of the header on."""


FROM_THE_START: Final = (
    45, 46, 50, 51, 57, 60, 61, 64, 65, 66, 68, 69, 71, 72, *range(74, 83), *range(88, 93),
)  # fmt: skip
"""APIs whose first version has the field, and tags in the header."""

PLACES: Final = {
    1: ThrottlePlace(1, 12),
    2: ThrottlePlace(2, 6),
    3: ThrottlePlace(3, 9),
    8: ThrottlePlace(3, 8),
    9: ThrottlePlace(3, 6),
    10: ThrottlePlace(1, 3),
    11: ThrottlePlace(2, 6),
    12: ThrottlePlace(1, 4),
    13: ThrottlePlace(1, 4),
    14: ThrottlePlace(1, 4),
    15: ThrottlePlace(1, 5),
    16: ThrottlePlace(1, 3),
    19: ThrottlePlace(2, 5),
    20: ThrottlePlace(1, 4),
    21: ThrottlePlace(0, 2),
    22: ThrottlePlace(0, 2),
    23: ThrottlePlace(2, 4),
    24: ThrottlePlace(0, 3),
    25: ThrottlePlace(0, 3),
    26: ThrottlePlace(0, 3),
    28: ThrottlePlace(0, 3),
    29: ThrottlePlace(0, 2),
    30: ThrottlePlace(0, 2),
    31: ThrottlePlace(0, 2),
    32: ThrottlePlace(0, 4),
    33: ThrottlePlace(0, 2),
    34: ThrottlePlace(0, 2),
    35: ThrottlePlace(0, 2),
    37: ThrottlePlace(0, 2),
    39: ThrottlePlace(0, 2, offset=10),
    40: ThrottlePlace(0, 2, offset=10),
    42: ThrottlePlace(0, 2),
    43: ThrottlePlace(0, 2),
    44: ThrottlePlace(0, 1),
    47: ThrottlePlace(0, offset=2),
    48: ThrottlePlace(0, 1),
    49: ThrottlePlace(0, 1),
    **dict.fromkeys(FROM_THE_START, ThrottlePlace(0, 0)),
}
"""By API key. Not listed: Produce and ApiVersions, where the field has no fixed place; APIs of controllers
and of SASL; and delegation tokens (38 and 41), where it is the last field.
"""
