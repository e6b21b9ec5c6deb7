"""How many examples of Hypothesis a test takes: a share in `pytest`, several times as many every night.

An error in one of three hundred examples is found by one run in a few; each run takes other examples.
"""

from __future__ import annotations

import os

PERCENT = int(os.environ.get("ODRADEK_EXAMPLES", "30"))
FEWEST = 10


def examples(count: int) -> int:
    """The number of examples to take instead of this one."""
    return max(min(count, FEWEST), count * PERCENT // 100)
