"""The rules of the contract: what each demands, what breaks it, and what to do instead.

The texts are those of ``docs/reference/receiver-contract.md``, which is installed with the code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from odradek.programs.shipped import DOCS

PAGE: Final = DOCS / "reference/receiver-contract.md"
THREADS_TITLE: Final = "Threads"


def texts_of(page: str) -> dict[str, str]:
    """The explanations by title, each in two lines: the demand, and what breaks it."""
    _, *parts = re.split(r"^### (.+)$", page.partition("\n## The rules\n")[2], flags=re.MULTILINE)
    texts = (" ".join(section.strip().split("\n\n")[-1].split()) for section in parts[1::2])
    explained = (text.replace(" *Broken by:* ", "\nBroken by: ") for text in texts)
    return dict(zip(parts[::2], explained, strict=True))


EXPLANATIONS: Final[Mapping[str, str]] = texts_of(PAGE.read_text(encoding="utf-8"))
NAMES: Final = tuple(title.partition("-")[2] for title in EXPLANATIONS if title != THREADS_TITLE)
"""The names of all rules, starting with R1."""
