"""The shipped rules with all their times divided by one factor, so that alerts fit into minutes.

Clients push each second and their sessions are six seconds. The console waits as long as it always does, and
the windows of what hosts and gateways count themselves stay as they are: that goes on in real time.
"""

from __future__ import annotations

import re
from typing import Final

FACTOR: Final = 10
COUNTED: Final = "io_odradek_observed_client_"
DURATION: Final = re.compile(
    r"(?<=\[)\d+[smhd](?=[\]:])|(?<=:)\d+[smhd](?=\])|(?<=for: )\d+[smhd]\b|(?<=offset )\d+[smhd]\b"
)
UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def hurried(rules: str) -> str:
    """The text of a file of rules, with its windows and each ``for`` shortened."""

    def shorter(found: re.Match[str]) -> str:
        seconds = int(found[0][:-1]) * UNITS_S[found[0][-1]]
        return f"{max(1, seconds // FACTOR)}s"

    return "".join(
        line if COUNTED in line else DURATION.sub(shorter, line) for line in rules.splitlines(keepends=True)
    )
