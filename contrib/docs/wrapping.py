"""Wraps the lines of all pages at 120 characters.

    python -m contrib.docs.wrapping            # from the repository's root
    python -m contrib.docs.wrapping --check    # exit status 1 if a line is too long

Only paragraphs and items with a line that is too long change. Tables, headings, code and comments stay. So do
pages that another command writes, decisions and the changelog.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEMPLATES = (ROOT / "contrib/grafana/runbook.md.in",)
WIDTH = 120
SKIPPED = {"node_modules", "build", "dist", "decisions"}
WRITTEN = re.compile(r"<!-- Written by ")
STAYS = re.compile(r"\s*(\||#|<|>|!\[)|\s*$")
ITEM = re.compile(r"\s*([*+-]|\d+\.) +|(?=\*[A-Z][^*]*:\*)")
"""The mark of an item, or a line with a title like ``*Broken by:*``, which also begins a part of its own."""
WORD = re.compile(r"(?:`[^`]*`|[^\s`]|`)+")
"""A word; the text in backticks is never divided."""
BEGINS_A_BLOCK = re.compile(r"[*+-]$|\d+[.)]$|#|>|\||<")


def pages() -> list[Path]:
    """The pages whose lines are wrapped."""
    return [
        path
        for path in (*sorted(ROOT.rglob("*.md")), *TEMPLATES)
        if not any(part.startswith(".") or part in SKIPPED for part in path.relative_to(ROOT).parts)
        and path.name != "CHANGELOG.md"
        and not WRITTEN.search(path.read_text(encoding="utf-8"))
    ]


def filled(lines: list[str]) -> list[str]:
    """The lines of a paragraph or an item, wrapped; as they are if none is too long."""
    if max(map(len, lines)) <= WIDTH:
        return lines
    item = ITEM.match(lines[0])
    first = item[0] if item else re.match(r"\s*", lines[0])[0]  # type: ignore[index]
    words = WORD.findall(" ".join(lines)[len(first) :])
    found, line, indent = [], first + words[0], " " * len(first)
    for word in words[1:]:
        if len(line) + 1 + len(word) > WIDTH and not BEGINS_A_BLOCK.match(word):
            found.append(line)
            line = indent + word
        else:
            line += f" {word}"
    return [*found, line]


def parts(text: str) -> Iterator[tuple[list[str], bool]]:
    """The paragraphs and items of a page, and each line that stays; whether a part may be wrapped."""
    part: list[str] = []
    ends = ""
    for line in text.splitlines():
        stays = bool(ends or STAYS.match(line) or line.lstrip().startswith("```"))
        if (stays or ITEM.match(line)) and part:
            yield part, True
            part = []
        if not stays:
            part.append(line)
            continue
        yield [line], False
        if ends:
            ends = "" if ends in line else ends
        elif line.lstrip().startswith("```"):
            ends = "```"
        elif line.startswith("<!--") and "-->" not in line:
            ends = "-->"
    if part:
        yield part, True


def wrapped(text: str) -> str:
    """The page with its lines wrapped."""
    return "\n".join(line for part, fills in parts(text) for line in (filled(part) if fills else part)) + "\n"


def main(arguments: list[str]) -> int:
    """Write or compare; the exit status."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m contrib.docs.wrapping [--check]\n")
        return 2
    changed = [path for path in pages() if wrapped(text := path.read_text(encoding="utf-8")) != text]
    for path in changed:
        if arguments:
            sys.stderr.write(f"{path.relative_to(ROOT)} has long lines: python -m contrib.docs.wrapping\n")
        else:
            path.write_text(wrapped(path.read_text(encoding="utf-8")), encoding="utf-8")
    return int(bool(changed and arguments))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
