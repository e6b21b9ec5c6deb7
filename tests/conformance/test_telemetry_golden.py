"""Apache Kafka's answers to the telemetry APIs, replayed under the Kafka policy.

The clock stands still: Kafka got the requests of a file in quick succession. The test replays the client
instance ids that Kafka drew, so that subscription ids, which depend on them, must equal Kafka's.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.test_client_metrics_configs_golden import decoded
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.messages.push_telemetry import PushTelemetryResponse
from odradek.wire.types import NIL_UUID
from support.broker import make_broker, make_connection
from support.golden import GOLDEN, VERSIONS, Exchange, exchanges, golden_files, golden_id
from support.headers import peek_api

CONFIG = TelemetryConfig(telemetry_max_bytes=4096, error_policy=ErrorPolicy.KAFKA)
FILES = golden_files("get_telemetry_subscriptions_v*", "push_telemetry_v*")
TELEMETRY = (71, 72)
WITHOUT_RECEIVER = "push_telemetry_v0_without_receiver"
NIL_ID = "get_telemetry_subscriptions_v0_nil_id"
NEWER = {
    # KAFKA-21076: too large after decompression has an error of its own; it was INVALID_RECORD
    ("push_telemetry_v0_expanded_gzip", "compression type 1"): ErrorCode.TELEMETRY_TOO_LARGE,
    ("push_telemetry_v0_expanded_zstd", "compression type 4"): ErrorCode.TELEMETRY_TOO_LARGE,
}
"""The expected error code where we follow a newer Kafka source on purpose, by file and label."""


class Receiver:
    """A receiver that ignores every payload."""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Ignore the payload."""


def drawn_ids(dispatcher: Dispatcher, rows: list[Exchange]) -> Iterator[bytes]:
    """The client instance ids that Kafka gave to clients without one."""
    for row in rows:
        if peek_api(row.request)[0] == TELEMETRY[0] and row.response is not None:
            answer = decoded(dispatcher, row.request, row.response)
            # the id is at the end of the request, before one byte of tags
            if row.request[-17:-1] == NIL_UUID and not answer.error_code:
                yield answer.client_instance_id


def replay(path: Path) -> list[tuple[str, Any, Any]]:
    """The label, Kafka's answer and ours for each telemetry request; None for a closed connection."""
    broker = make_broker(telemetry=CONFIG)
    if path.stem != WITHOUT_RECEIVER:
        broker.telemetry.plugin.add_receiver("any", Receiver())
    dispatcher = Dispatcher(broker, Routes())
    rows = exchanges(path)
    ids = drawn_ids(dispatcher, rows)
    broker.telemetry.random_uuid = lambda: next(ids)
    connection = make_connection()
    answers = []
    for row in rows:
        try:
            answer = dispatcher.answer(row.request, 0, connection)
        except WireError:
            answer = None
        if peek_api(row.request)[0] in TELEMETRY:
            ours = decoded(dispatcher, row.request, answer[4:]) if isinstance(answer, bytes) else None
            theirs = decoded(dispatcher, row.request, row.response) if row.response else None
            answers.append((row.label, theirs, ours))
    assert dispatcher.unexpected_errors == 0
    return answers


@pytest.mark.parametrize("path", FILES, ids=golden_id)
def test_the_answer_is_kafkas(path: Path) -> None:
    rows = replay(path)

    assert rows
    for label, theirs, ours in rows:
        newer = NEWER.get((path.stem, label))
        if newer is None:
            assert ours == theirs, label
        else:
            assert ours == PushTelemetryResponse(error_code=newer), label
            assert theirs == PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD), label


@pytest.mark.parametrize("version", VERSIONS)
def test_the_drawn_id_determines_the_subscription_id(version: str) -> None:
    rows = replay(GOLDEN / version / f"{NIL_ID}.hex")

    ids = {ours.client_instance_id: ours.subscription_id for _, _, ours in rows}

    assert NIL_UUID not in ids
    assert len(set(ids.values())) == 2


def test_every_listed_difference_is_in_a_file() -> None:
    labels = {(path.stem, row.label) for path in FILES for row in exchanges(path)}

    unknown = NEWER.keys() - labels

    assert unknown == set()


def test_every_recorded_answer_is_compared() -> None:
    closed = {path.stem for path in FILES for _, theirs, _ in replay(path) if theirs is None}

    assert closed == {"push_telemetry_v0_null"}
    assert len(FILES) >= 40 * len(VERSIONS)
