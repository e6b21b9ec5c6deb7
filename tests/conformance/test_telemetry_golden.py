"""What Apache Kafka 4.3.1 answered to the telemetry APIs, replayed under the Kafka policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conformance.test_client_metrics_configs_golden import GOLDEN, decoded, exchanges
from odradek.broker.routing import Dispatcher, load_handlers
from odradek.telemetry.subscription_id import uuid_hash
from odradek.telemetry.telemetry_config import ErrorPolicy, TelemetryConfig
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import peek_api
from odradek.wire.messages.get_telemetry_subscriptions import GetTelemetrySubscriptionsResponse
from odradek.wire.messages.push_telemetry import PushTelemetryResponse
from odradek.wire.types import NIL_UUID
from support.broker import make_broker, make_connection

CONFIG = TelemetryConfig(telemetry_max_bytes=4096, error_policy=ErrorPolicy.KAFKA)
FILES = sorted((*GOLDEN.glob("get_telemetry_subscriptions_v*.hex"), *GOLDEN.glob("push_telemetry_v*.hex")))
TELEMETRY = (71, 72)
EXPANDED = {"push_telemetry_v0_expanded_gzip", "push_telemetry_v0_expanded_zstd"}
"""Too large after decompression: INVALID_RECORD in 4.3.1, an error of its own since KAFKA-21076."""


def replay(path: Path) -> list[tuple[str, Any, Any]]:
    """Label, Kafka's answer and ours for each telemetry request; None for a closed connection."""
    dispatcher = Dispatcher(make_broker(telemetry=CONFIG), load_handlers())
    connection = make_connection()
    rows = []
    for exchange in exchanges(path):
        try:
            answer = dispatcher.answer(exchange.request, 0, connection)
        except WireError:
            answer = None
        if peek_api(exchange.request)[0] in TELEMETRY:
            ours = decoded(dispatcher, exchange.request, answer[4:]) if isinstance(answer, bytes) else None
            theirs = decoded(dispatcher, exchange.request, exchange.response) if exchange.response else None
            rows.append((exchange.label, comparable(theirs), comparable(ours)))
    return rows


def comparable(answer: Any) -> Any:
    """An answer without what is random: an id that the broker drew, and its share of the subscription id."""
    if isinstance(answer, GetTelemetrySubscriptionsResponse) and not answer.error_code:
        share = uuid_hash(answer.client_instance_id)
        checksum = (answer.subscription_id ^ share) & 0xFFFFFFFF
        return replace(answer, client_instance_id=NIL_UUID, subscription_id=checksum)
    return answer


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_answer_is_kafkas(path: Path) -> None:
    rows = replay(path)

    differences = [row for row in rows if row[1] != row[2]]

    assert rows
    if path.stem not in EXPANDED:
        assert differences == []
        return
    ((_, theirs, ours),) = differences
    assert theirs == PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD)
    assert ours == PushTelemetryResponse(error_code=ErrorCode.TELEMETRY_TOO_LARGE)


def test_known_ids_are_echoed() -> None:
    path = GOLDEN / "get_telemetry_subscriptions_v0_own_id.hex"
    dispatcher = Dispatcher(make_broker(telemetry=CONFIG), load_handlers())
    first = exchanges(path)[0]

    answer = dispatcher.answer(first.request, 0, make_connection())

    assert isinstance(answer, bytes)
    assert answer[4:] == first.response
