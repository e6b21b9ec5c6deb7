"""Lines of pages have at most 120 characters, but for tables, code and words that cannot be divided."""

from __future__ import annotations

from pathlib import Path

import pytest
from contrib.docs.wrapping import ROOT, WIDTH, pages, wrapped

LONG = "word " * 40


@pytest.mark.parametrize("path", pages(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_line_is_too_long(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert wrapped(text) == text, "run python -m contrib.docs.wrapping"


def test_paragraphs_and_items_are_wrapped() -> None:
    found = wrapped(f"{LONG}\n{LONG}\n\n* {LONG}\n  {LONG}\n* short\n")

    assert max(map(len, found.splitlines())) <= WIDTH
    assert found.split() == f"{LONG}{LONG}* {LONG}{LONG}* short".split()
    assert "\n  word" in found


@pytest.mark.parametrize(
    "text",
    [f"| {LONG} |\n", f"# {LONG}\n", f"```\n{LONG}\n```\n", f"<!-- {LONG}\n{LONG} -->\n", "short\nlines\n"],
)
def test_what_is_no_text_stays(text: str) -> None:
    assert wrapped(text) == text


def test_what_is_in_backticks_is_not_divided() -> None:
    command = "`odradek serve --set a=b`"

    assert command in wrapped(f"{'word ' * 22}{command} {LONG}\n")


def test_no_line_begins_as_a_block_does() -> None:
    found = wrapped(f"{'word ' * 23}+ 1. {LONG}\n")

    assert [line for line in found.splitlines() if line.startswith(("+", "1."))] == []
