"""Conversations of a client and a host, for conformance reports."""

from __future__ import annotations

from odradek.plugin import RequestContext
from odradek.testing import request_context
from odradek.testing.conformance import (
    ConformanceReport,
    Exchange,
    Handshake,
    Observation,
    Pushed,
    RuleRow,
    conformance_report,
)
from odradek.testing.pushes import metrics_data
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.types import NIL_UUID

START_MS = 1_700_000_000_000
INTERVAL_MS = 10_000
ME = bytes(range(16))
ZSTD = 4


class Conversation:
    """The exchanges of one client; times are in intervals since the start."""

    def __init__(self, interval_ms: int = INTERVAL_MS, prefixes: tuple[str, ...] = ("*",)) -> None:
        self.interval_ms = interval_ms
        self.prefixes = list(prefixes)
        self.exchanges: list[Exchange] = []

    def context(self, at: float, api_key: int) -> RequestContext:
        received_ms = START_MS + round(at * self.interval_ms)
        return request_context(api_key=api_key, client_id="me", received_ms=received_ms)

    def handshake(
        self,
        at: float,
        *,
        asked_id: bytes = NIL_UUID,
        given_id: bytes = ME,
        error: ErrorCode | None = ErrorCode.NONE,
        subscription_id: int = 1,
    ) -> Conversation:
        response = GetTelemetrySubscriptionsResponse(
            client_instance_id=given_id,
            subscription_id=subscription_id,
            accepted_compression_types=[4, 3, 1, 2],
            push_interval_ms=self.interval_ms,
            telemetry_max_bytes=1_000,
            delta_temporality=True,
            requested_metrics=self.prefixes,
        )
        handshake = Handshake(context=self.context(at, 71), asked_id=asked_id, error=error, response=response)
        self.exchanges.append(handshake)
        return self

    def push(
        self,
        at: float,
        *,
        data: bytes | None = None,
        error: ErrorCode | None = ErrorCode.NONE,
        terminating: bool = False,
        subscription_id: int = 1,
        codec: int = ZSTD,
        sent_bytes: int = 100,
    ) -> Conversation:
        taken = metrics_data() if data is None else data
        push = Pushed(
            context=self.context(at, 72),
            client_instance_id=ME,
            subscription_id=subscription_id,
            terminating=terminating,
            codec=codec,
            sent_bytes=sent_bytes,
            error=error,
            data=taken if error is ErrorCode.NONE else b"",
        )
        self.exchanges.append(push)
        return self

    def report(
        self, until: float | None = None, *, complete: bool = True, timed: bool = True
    ) -> ConformanceReport:
        """The report of an observation until then."""
        until_ms = None if until is None else START_MS + round(until * self.interval_ms)
        seen = Observation(exchanges=self.exchanges, complete=complete, timed=timed, until_ms=until_ms)
        return conformance_report("me", seen)

    def rule(self, name: str, until: float | None = None, *, timed: bool = True) -> RuleRow:
        """The result of one rule."""
        (row,) = (row for row in self.report(until, timed=timed).rules if row.rule == name)
        return row

    def verdict(self, name: str, until: float | None = None, *, timed: bool = True) -> tuple[str, str]:
        """The verdict with its reason."""
        row = self.rule(name, until, timed=timed)
        return row.verdict.value, row.seen
