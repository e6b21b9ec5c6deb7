"""Errors for users of ``format("odradek")``. As in Spark, a message begins with its condition."""

from __future__ import annotations

import re
from typing import ClassVar

PREFIX = re.compile(r"\[ODRADEK_\w+\] ")


class Condition(RuntimeError):
    """An error that the user can fix; the message says how, in one line: the last of Spark's traceback."""

    condition: ClassVar[str] = "ODRADEK_ERROR"

    def __str__(self) -> str:
        return f"[{self.condition}] {' '.join(super().__str__().split())}"


def without_condition(message: str) -> str:
    """The message for a command line, which has no use for conditions."""
    return PREFIX.sub("", message)
