"""The largest numbers of the protocol's types."""

from __future__ import annotations

from typing import Final

INT16_MAX: Final = 2**15 - 1
INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
INT64_MIN: Final = -INT64_MAX - 1
