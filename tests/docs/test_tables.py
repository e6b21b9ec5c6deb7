"""Tables of pages are in one piece, and comments end with their line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.test_links import FENCE, pages
from support.reference_page import ROOT

SEPARATOR = re.compile(r"\|(?: ?:?-+:? ?\|)+")
COMMENT_GOES_ON = re.compile(r"^<!--(?:(?!-->).)*?\n(?:(?!-->).)*?-->[^\n]+$", re.MULTILINE | re.DOTALL)


def broken(text: str) -> list[str]:
    """The lines that begin a table without a head, and the ends of long comments with text behind them."""
    lines = FENCE.sub("", text).splitlines()
    found = [
        line
        for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False)
        if line.startswith("|") and not before.startswith("|") and not SEPARATOR.fullmatch(after.strip())
    ]
    return found + [each[0].splitlines()[-1] for each in COMMENT_GOES_ON.finditer(text)]


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_table_or_comment_is_broken(path: Path) -> None:
    assert broken(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("| a | b |\n|---|---|\n| 1 | 2 |\n", []),
        ("| a | b |\n|---|---|\n\n| 1 | 2 |\n", ["| 1 | 2 |"]),
        ("```\n| 1 | 2 |\n```\n", []),
        ("<!-- first: a\nb -->\nText\n", []),
        ("<!-- first: a\nb --> Text\n", ["b --> Text"]),
    ],
)
def test_what_is_broken(text: str, lines: list[str]) -> None:
    assert broken(text) == lines
