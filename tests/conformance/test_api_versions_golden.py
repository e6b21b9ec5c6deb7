"""Apache Kafka 4.3.1's answers to ApiVersions, replayed and compared for the APIs that this host serves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conformance.test_client_metrics_configs_golden import GOLDEN, decoded, exchanges
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import load_handlers
from odradek.plugin import ClientTelemetryPayload, RequestContext
from support.broker import make_broker, make_connection
from support.headers import peek_api

FILES = sorted(GOLDEN.glob("api_versions_v*.hex"))
NEWEST = 4
WITHOUT_RECEIVER = "api_versions_v3_without_receiver"
TELEMETRY = {71, 72}
NOT_SERVED = {"eligible.leader.replicas.version", "share.version", "streams.version"}
"""Features that Kafka has finalized and that are off here."""


class Receiver:
    """A receiver that ignores every payload: with a receiver the host offers the telemetry APIs."""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Ignore the payload."""


def dispatcher_for(path: Path) -> Dispatcher:
    """A fresh broker, with a receiver if Kafka had one."""
    broker = make_broker()
    if path.stem != WITHOUT_RECEIVER:
        broker.telemetry.plugin.add_receiver("any", Receiver())
    return Dispatcher(broker, load_handlers())


def ranges(message: Any, served: set[int]) -> dict[int, tuple[int, int]]:
    """First and last version of each API that this host serves, by key."""
    return {
        api.api_key: (api.min_version, api.max_version) for api in message.api_keys if api.api_key in served
    }


def finalized(message: Any) -> dict[str, tuple[int, int]]:
    """First and last level of each finalized feature."""
    return {
        feature.name: (feature.min_version_level, feature.max_version_level)
        for feature in message.finalized_features
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_served_apis_are_offered_as_kafka_offers_them(path: Path) -> None:
    dispatcher, connection = dispatcher_for(path), make_connection()
    served = set(dispatcher.routes)

    for exchange in exchanges(path):
        answer = dispatcher.answer(exchange.request, 0, connection)

        assert isinstance(answer, bytes)
        assert exchange.response is not None
        if peek_api(exchange.request)[1] > NEWEST:
            assert answer[4:] == exchange.response
            continue
        ours = decoded(dispatcher, exchange.request, answer[4:])
        theirs = decoded(dispatcher, exchange.request, exchange.response)
        assert (ours.error_code, ours.throttle_time_ms) == (theirs.error_code, theirs.throttle_time_ms)
        assert ranges(ours, served) == ranges(theirs, served), exchange.label
        assert ours.supported_features == theirs.supported_features, exchange.label
        expected = {name: level for name, level in finalized(theirs).items() if name not in NOT_SERVED}
        assert finalized(ours) == expected, exchange.label
        assert (ours.finalized_features_epoch < 0) == (theirs.finalized_features_epoch < 0), exchange.label


def test_without_a_receiver_only_the_telemetry_apis_are_hidden() -> None:
    path = GOLDEN / f"{WITHOUT_RECEIVER}.hex"
    dispatcher = dispatcher_for(path)
    first = exchanges(path)[0]

    answer = dispatcher.answer(first.request, 0, make_connection())

    assert isinstance(answer, bytes)
    offered = {api.api_key for api in decoded(dispatcher, first.request, answer[4:]).api_keys}
    assert set(dispatcher.routes) - offered == TELEMETRY


def test_every_version_has_a_golden_file() -> None:
    assert {path.stem.split("_")[2] for path in FILES} == {
        f"v{version}" for version in (*range(NEWEST + 1), 99)
    }
