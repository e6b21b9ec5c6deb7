"""Pushes as they are recorded, found, and missed."""

from __future__ import annotations

import pytest

from conformance.telemetry_broker import otlp
from odradek.plugin import ClientTelemetryPayload
from odradek.testing import request_context
from odradek.testing.arrivals import Arrivals, NothingCame
from odradek.testing.telemetry_log import KEPT, TelemetryLog
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.push_telemetry import PushTelemetryRequest


def make_log(*pushes: tuple[str, ErrorCode | None, bytes, bool]) -> TelemetryLog:
    """A log of pushes: client id, answer, accepted payload, terminating."""
    log = TelemetryLog(Arrivals())
    for client_id, error, data, terminating in pushes:
        context = request_context(client_id=client_id)
        if data:
            log.export_metrics(context, ClientTelemetryPayload(bytes(16), terminating, data))
        request = PushTelemetryRequest(metrics=memoryview(data), terminating=terminating)  # type: ignore[arg-type]
        log.answered(context, request, error, None)
    return log


NONE, TOO_LARGE = ErrorCode.NONE, ErrorCode.TELEMETRY_TOO_LARGE


def test_a_metric_is_found_by_name_by_pattern_and_by_client() -> None:
    log = make_log(("a", NONE, otlp("x.one"), False), ("b", NONE, otlp("x.two", "y"), False))

    assert [point.metric for point in log.wait_for("x.two", timeout_s=0)] == ["x.two"]
    assert [point.metric for point in log.wait_for("x.*", client_id="b", timeout_s=0)] == ["x.two"]
    assert [point.metric for point in log.wait_for(client_id="b*", timeout_s=0)] == ["x.two", "y"]


def test_a_push_can_be_searched_after_another() -> None:
    log = make_log(("a", NONE, otlp("x"), False), ("a", TOO_LARGE, b"", False), ("a", NONE, b"", True))

    refused = log.wait_for_push(error="TELEMETRY_TOO_LARGE", timeout_s=0)
    last = log.wait_for_push(after=refused, terminating=True, timeout_s=0)

    assert (refused.number, last.number) == (2, 3)
    assert last.points == []


def test_a_push_without_an_answer_is_recorded_as_dropped() -> None:
    log = make_log(("a", None, otlp("x"), False))

    with pytest.raises(NothingCame, match="no push answered NONE of client a within 0 s"):
        log.wait_for_push(client_id="a", timeout_s=0)

    assert str(log.pushes[0]).startswith("a: dropped, ")


def test_a_payload_that_is_not_otlp_has_no_points() -> None:
    assert make_log(("a", NONE, b"\xff\xff", False)).pushes[0].points == []


def test_the_log_is_bounded() -> None:
    log = make_log(*[("a", NONE, b"", False)] * (KEPT + 5))

    assert (len(log.pushes), log.pushes[-1].number) == (KEPT, KEPT + 5)
