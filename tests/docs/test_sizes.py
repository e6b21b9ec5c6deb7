"""Files that fit in the head: at most 400 lines of a source file, and 500 of a test file."""

from __future__ import annotations

from collections.abc import Iterator

from support.reference_page import ROOT

FOLDERS = ("host", "plugins", "contrib", "tests", "examples")
MOST_LINES = 400
MOST_LINES_OF_A_TEST = 500


def too_long() -> Iterator[str]:
    """The files with more lines, as `wc -l` counts them."""
    for path in sorted(each for folder in FOLDERS for each in (ROOT / folder).rglob("*.py")):
        inside = path.relative_to(ROOT)
        lines = path.read_bytes().count(b"\n")
        if lines > (MOST_LINES_OF_A_TEST if "tests" in inside.parts else MOST_LINES):
            yield f"{inside}: {lines} lines"


def test_no_file_is_too_long() -> None:
    assert list(too_long()) == []
