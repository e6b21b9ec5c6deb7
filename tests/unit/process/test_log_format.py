"""The two forms of the log."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from odradek.endpoints.log_lines import MOST_KINDS, MOST_LINES, JsonFormatter, LibraryFilter, LineFormatter
from odradek.process.log_format import Size


def record(message: str, **fields: object) -> logging.LogRecord:
    made = logging.makeLogRecord(
        {"name": "odradek.x", "levelname": "WARNING", "levelno": 30, "msg": message, "created": 1.5}
    )
    vars(made).update(fields)
    return made


def test_a_line_ends_with_the_fields() -> None:
    line = LineFormatter().format(record("it failed", plugin="otlp", tries=3))

    assert line.endswith(" WARNING odradek.x: it failed plugin=otlp tries=3")


@pytest.mark.parametrize("form", [LineFormatter(), JsonFormatter()])
def test_a_field_cannot_forge_a_line(form: logging.Formatter) -> None:
    text = form.format(record("authentication failed", user="eve\n2026-11-22 INFO: all is well\x1b[2J"))

    assert len(text.splitlines()) == 1
    assert text.isprintable()


def test_json_has_the_fields_of_the_line_with_their_types() -> None:
    text = JsonFormatter().format(record("it failed", tries=3, dropped={"full": 2}, where=object, level="x"))

    assert json.loads(text) == {
        "time": "1970-01-01T00:00:01.500Z",
        "level": "warning",
        "logger": "odradek.x",
        "message": "it failed",
        "tries": 3,
        "dropped": {"full": 2},
        "where": "<class 'object'>",
        "level_": "x",
    }


def test_a_traceback_is_a_field_of_the_same_json_line() -> None:
    try:
        raise ValueError("two\nlines")
    except ValueError:
        made = record("it failed", exc_info=sys.exc_info())

    text = JsonFormatter().format(made)

    assert len(text.splitlines()) == 1
    assert json.loads(text)["traceback"].endswith("ValueError: two\nlines")


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0B"),
        (1023, "1023B"),
        (1024, "1KiB"),
        (1_048_576, "1MiB"),
        (1_500_000, "1.4MiB"),
        (104_857_600, "100MiB"),
        (3_159_562_752, "2.9GiB"),
        (1 << 50, "1048576GiB"),
    ],
)
def test_a_size_has_a_unit_for_people_and_is_a_number_for_programs(size: int, text: str) -> None:
    made = record("limit", bytes=Size(size))

    assert LineFormatter().format(made).endswith(f" limit bytes={text}")
    assert json.loads(JsonFormatter().format(made))["bytes"] == size


def of_library(text: str, created: float) -> logging.LogRecord:
    return logging.makeLogRecord({"name": "asyncio", "msg": text, "created": created})


def test_a_library_has_few_lines_of_a_kind_in_a_minute() -> None:
    kept = LibraryFilter()

    lines = [of_library("socket.send() failed", 100 + second) for second in range(120)]
    passed = [bool(kept.filter(each)) for each in lines]
    others = kept.filter(of_library("another kind", 150)), kept.filter(record("one of ours"))

    assert [second for second, each in enumerate(passed) if each] == [0, 60]
    assert [getattr(lines[second], "unlogged", 0) for second in (0, 60)] == [0, 59]
    assert all(others)


def test_kinds_without_end_are_bounded_together() -> None:
    kept = LibraryFilter()

    passed = sum(bool(kept.filter(of_library(f"text {number}", 100.0))) for number in range(10_000))

    assert passed == MOST_KINDS + MOST_LINES
