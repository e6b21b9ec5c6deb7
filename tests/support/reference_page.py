"""Pages of ``host/docs``, as tests read them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "host/docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"#{2,4} (?P<title>.+)")


def page(name: str) -> str:
    """The text of a page below ``host/docs``."""
    return (DOCS / name).read_text(encoding="utf-8")


def sections(name: str) -> dict[str, str]:
    """The text below each heading, up to the next heading of any level."""
    found: dict[str, str] = {}
    title = ""
    for line in page(name).splitlines():
        heading = HEADING.fullmatch(line)
        if heading is not None:
            title = heading["title"].replace("`", "")
            found[title] = ""
        else:
            found[title] = f"{found.get(title, '')}{line}\n"
    return found


def blocks(name: str) -> list[tuple[str, str]]:
    """The fenced blocks of a page, in order: language and text."""
    return FENCE.findall(page(name))


def rows(text: str) -> dict[str, list[str]]:
    """The rows of the tables in a text: first cell without backticks to all cells."""
    cells = [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("| "))]
        for line in text.splitlines()
        if line.startswith("|") and not line.startswith("|-")
    ]
    return {row[0].strip("`"): row for row in cells}
