"""A destination that is down is one line, however often it is tried."""

from __future__ import annotations

import logging

import pytest

from odradek.plugin.protocols import Reject, Retry
from odradek.server.plugins.destination_log import DestinationLog


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
        "destination is down, trying again",
        "destination delivers again",
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
    destination.refused(Reject("too old"), 1)
    destination.delivered(1)

    assert [record.getMessage() for record in caplog.records] == ["destination refused records"]
