from __future__ import annotations

import logging

import pytest

from odradek.bounds.sampled_log import INTERVAL_MS, SampledLog

log = logging.getLogger("odradek.test")


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, int]]:
    """The lines, each with the number of events before it that have no line."""
    return [(record.getMessage(), vars(record)["unlogged"]) for record in caplog.records]


def test_one_event_of_each_interval_is_logged_with_the_number_of_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    sampled = SampledLog(log)

    for at_ms in range(0, 3 * INTERVAL_MS, 1_000):
        sampled.write(logging.WARNING, at_ms, "event %d", at_ms)

    assert lines(caplog) == [("event 0", 0), ("event 60000", 59), ("event 120000", 59)]


def test_an_interval_begins_with_its_first_event(caplog: pytest.LogCaptureFixture) -> None:
    sampled = SampledLog(log)

    for at_ms in (100_000, 159_999, 160_000):
        sampled.write(logging.WARNING, at_ms, "event at %d", at_ms)

    assert lines(caplog) == [("event at 100000", 0), ("event at 160000", 1)]


def test_an_interval_may_have_several_lines(caplog: pytest.LogCaptureFixture) -> None:
    sampled = SampledLog(log, most=2, interval_ms=10)

    for at_ms in (0, 1, 2, 3, 10, 11):
        sampled.write(logging.WARNING, at_ms, "%d", at_ms)

    assert lines(caplog) == [("0", 0), ("1", 0), ("10", 2), ("11", 0)]


def test_a_line_has_its_fields_and_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    SampledLog(log).write(logging.ERROR, 0, "failed", error=ValueError("why"), plugin="p")

    (record,) = caplog.records
    assert vars(record)["plugin"] == "p"
    assert "ValueError: why" in caplog.text
