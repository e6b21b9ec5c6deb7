"""Faults: which clients they affect, how often, and how they are described."""

from __future__ import annotations

import pytest

from odradek.plugin import RequestContext
from odradek.testing import request_context
from odradek.testing.arrivals import Arrivals, NothingCame
from odradek.testing.fault import Drop, Fault, error_code
from odradek.wire.error_code import ErrorCode


def context(client_id: str | None) -> RequestContext:
    return request_context(client_id=client_id)


def make_fault(client_id: str | None = None, times: int | None = 1, drop: Drop | None = "before") -> Fault:
    return Fault(api="PushTelemetry", arrivals=Arrivals(), client_id=client_id, times=times, drop=drop)


@pytest.mark.parametrize(
    ("pattern", "client_id", "hit"),
    [(None, "a", True), (None, None, True), ("a", "a", True), ("a*", "abc", True), ("a", "b", False)],
)
def test_a_fault_affects_the_clients_it_names(pattern: str | None, client_id: str | None, hit: bool) -> None:
    assert make_fault(pattern).hits("PushTelemetry", context(client_id)) is hit


def test_a_fault_affects_only_its_own_api() -> None:
    assert not make_fault().hits("Fetch", context("a"))


@pytest.mark.parametrize(
    ("times", "used", "hit"), [(1, 0, True), (1, 1, False), (3, 2, True), (None, 99, True)]
)
def test_a_fault_ends_after_its_times(times: int | None, used: int, hit: bool) -> None:
    fault = make_fault(times=times)

    fault.used = used

    assert fault.hits("PushTelemetry", context("a")) is hit


def test_a_removed_fault_affects_nothing() -> None:
    fault = make_fault(times=None)

    fault.remove()

    assert not fault.hits("PushTelemetry", context("a"))


def test_an_unused_fault_is_described_in_the_error() -> None:
    fault = make_fault("me")

    with pytest.raises(NothingCame) as missed:
        fault.wait(0)

    assert "PushTelemetry client_id=me drop=before (0 of 1)" in str(missed.value)


@pytest.mark.parametrize("error", ["TELEMETRY_TOO_LARGE", 118, ErrorCode.TELEMETRY_TOO_LARGE])
def test_an_error_can_be_given_by_name_and_by_number(error: ErrorCode | str | int) -> None:
    assert error_code(error) is ErrorCode.TELEMETRY_TOO_LARGE


def test_a_misspelled_error_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"TELEMETRY_TOO_LARGE\?"):
        error_code("TELEMETRY_TO_LARGE")
