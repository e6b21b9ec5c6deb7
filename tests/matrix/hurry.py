"""All times of findings and alerts, shortened by one factor.

    python -m matrix.hurry serve --set ...       # a program of Odradek whose findings hurry

Clients push each second and their sessions are six seconds: a minute of their lives is ten of others.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from importlib import import_module
from typing import Final

FACTOR: Final = 10
TIMES: Final = {
    "odradek.temporality.clients": ("LEAST_SILENCE_MS", "SLACK_MS"),
    "odradek.telemetry.goodbyes": ("LEAST_WAIT_MS",),
    "odradek.gateway.observation.membership": ("NO_MEMBERSHIP_AFTER_MS",),
}
"""Constants that no setting changes, by module."""
TABLES: Final = ("TROUBLES", "HINTS", "FINDINGS")
"""The tables of troubles; each row has the seconds for which it looks back and lasts."""
DURATION: Final = re.compile(r"(?<=\[)\d+[smh](?=[\]:])|(?<=for: )\d+[smh]\b|(?<=offset )\d+[smh]\b")
UNITS_S: Final = {"s": 1, "m": 60, "h": 3600}


def hurried_rules(rules: str) -> str:
    """The text of a file of rules, with its windows and each ``for`` shortened."""

    def shorter(found: re.Match[str]) -> str:
        seconds = int(found[0][:-1]) * UNITS_S[found[0][-1]]
        return f"{max(1, seconds // FACTOR)}s"

    return DURATION.sub(shorter, rules)


def hurry() -> None:
    """Shorten the times of this process. Call it before other modules are imported."""
    for name, constants in TIMES.items():
        module = import_module(name)
        for constant in constants:
            setattr(module, constant, getattr(module, constant) // FACTOR)
    troubles = import_module("odradek.findings.troubles")
    for table in TABLES:
        rows = tuple(
            dataclasses.replace(row, over_s=row.over_s / FACTOR, for_s=row.for_s / FACTOR)
            for row in getattr(troubles, table)
        )
        setattr(troubles, table, rows)
    setattr(troubles, "BY_ID", {each.id: each for each in troubles.TROUBLES})  # noqa: B010


if __name__ == "__main__":
    hurry()
    sys.argv[0] = "odradek"
    import_module("odradek.cli.main").main()
