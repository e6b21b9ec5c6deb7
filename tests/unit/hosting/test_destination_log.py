"""A destination that is down is one line, however often it is tried."""

from __future__ import annotations

import logging

import pytest

from odradek.hosting.destination_log import DELIVER, START, DestinationLog
from odradek.plugin.protocols import Retry
from odradek.temporality import StoreFailed
from support.telemetry_records import telemetry_record


@pytest.fixture
def destination(caplog: pytest.LogCaptureFixture) -> DestinationLog:
    caplog.set_level(logging.INFO)
    return DestinationLog("otlp")


def test_each_outage_is_one_line_at_its_beginning_and_one_at_its_end(
    destination: DestinationLog, caplog: pytest.LogCaptureFixture
) -> None:
    for outage_ms in (0, 100_000):
        destination.delivered(outage_ms)
        for attempt in range(5):
            destination.failed(Retry("connection refused"), 7, outage_ms + attempt * 1000)
        destination.delivered(outage_ms + 6_500)
        destination.delivered(outage_ms + 7_000)

    assert [record.getMessage() for record in caplog.records] == [
        "destination of otlp is down, trying again: Retry: connection refused",
        "destination of otlp delivers again",
    ] * 2
    down, again = map(vars, caplog.records[:2])
    assert (down["plugin"], down["problem"], down["records"]) == ("otlp", "Retry: connection refused", 7)
    assert (again["plugin"], again["down_s"], again["attempts"]) == ("otlp", 6.5, 5)


def test_the_attempts_are_in_the_log_at_debug(
    destination: DestinationLog, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    for attempt in range(3):
        destination.failed(TimeoutError(), 1, attempt)

    assert [record.levelname for record in caplog.records] == ["WARNING", "DEBUG", "DEBUG"]


def test_a_destination_that_refuses_records_is_not_down(
    destination: DestinationLog, caplog: pytest.LogCaptureFixture
) -> None:
    destination.given_up([telemetry_record(b"a")], "too old", "dropped")
    destination.delivered(1)

    (line,) = caplog.records
    assert line.getMessage() == "plugin otlp: 1 pushes are given up and dropped: too old"
    assert (vars(line)["reason"], vars(line)["records"]) == ("too old", 1)


def test_a_bug_has_its_traceback_once_a_minute(
    destination: DestinationLog, caplog: pytest.LogCaptureFixture
) -> None:
    for now_ms in range(0, 120_000, 1_000):
        destination.broken(DELIVER, KeyError("team"), 1, now_ms)

    assert [record.getMessage() for record in caplog.records] == [
        "plugin otlp failed in deliver: KeyError: 'team'; trying again"
    ] * 2
    assert vars(caplog.records[1])["unlogged"] == 59
    assert caplog.records[0].exc_info is not None


def test_a_bug_of_one_method_hides_none_of_another(
    destination: DestinationLog, caplog: pytest.LogCaptureFixture
) -> None:
    destination.broken(START, KeyError("team"), 0, 0)
    destination.metrics_failed(KeyError("points"), 0)
    destination.broken(DELIVER, KeyError("team"), 1, 0)

    assert len([record for record in caplog.records if record.exc_info]) == 3


def test_totals_without_rights_are_one_line_without_a_traceback(
    destination: DestinationLog, caplog: pytest.LogCaptureFixture
) -> None:
    for now_ms in range(0, 60_000, 1_000):
        destination.broken(START, StoreFailed("the.totals: TOPIC_AUTHORIZATION_FAILED"), 0, now_ms)

    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage() == (
        "totals of otlp cannot be kept, trying again: the.totals: TOPIC_AUTHORIZATION_FAILED"
    )
    assert destination.problem(60_000) == "start raised StoreFailed: the.totals: TOPIC_AUTHORIZATION_FAILED"


def test_one_bug_does_not_make_the_plugin_broken() -> None:
    destination = DestinationLog("otlp", patience=3)
    problems = []
    for now_ms in range(3):
        destination.broken(DELIVER, KeyError("team"), 1, now_ms)
        problems.append(destination.problem(now_ms))
    destination.delivered(3)

    assert [*problems, destination.problem(3)] == [None, None, "deliver raised KeyError: 'team'", None]


def test_a_failed_start_is_broken_at_once() -> None:
    destination = DestinationLog("otlp", patience=3)

    destination.broken(START, OSError("in use"), 0, 0)

    assert destination.problem(0) == "start raised OSError: in use"


def test_it_knows_since_when_nothing_succeeds_and_the_last_error(destination: DestinationLog) -> None:
    assert destination.outage(0) == {}

    destination.failed(Retry("connection refused"), 7, 1_000)
    destination.broken(DELIVER, KeyError("team"), 1, 3_000)
    assert destination.outage(6_000) == {"KeyError: 'team'": 5.0}

    destination.delivered(7_000)
    assert destination.outage(8_000) == {}


def test_a_call_that_does_not_return_fails_from_its_limit_on(destination: DestinationLog) -> None:
    with destination.call(DELIVER, 2.0, 0):
        assert destination.outage(4_000) == {}
        assert destination.outage(9_000) == {"deliver has not returned within its time limit of 2 s": 5.0}
