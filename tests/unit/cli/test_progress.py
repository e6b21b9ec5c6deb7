from __future__ import annotations

import sys

from odradek.cli.progress import Progress


def test_the_line_has_the_activity_or_a_count() -> None:
    progress = Progress("records")
    waiting = progress.line(2.4)
    progress.done = 1200

    assert (waiting, progress.line(61)) == ("records, 2 s", "1200 records, 61 s")


def test_streams_stay_as_they_are_without_a_terminal() -> None:
    before = sys.stdout, sys.stderr

    with Progress("records"):
        inside = sys.stdout, sys.stderr

    assert inside == before
