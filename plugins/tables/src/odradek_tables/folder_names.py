"""Names of folders that some reader of paths misreads.

A module of its own without Spark, because hosts read their settings with it.
"""

from __future__ import annotations

import re
from typing import Final

MISREAD: Final = re.compile(r"[*?\[\]{}\\#%\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Spark and DuckDB read patterns, a URI's path ends at ``#`` and ``?``, and ``deltalake`` decodes ``%``.

Control characters are misread by people.
"""


def misread_character(path: str) -> str | None:
    """The part of a path that some reader would misread, for people; None if there is none."""
    found = MISREAD.search(path)
    if found is None:
        return None
    return found[0] if found[0].isprintable() else f"the control character {found[0]!a}"
