"""Apache Kafka's answers to ApiVersions, replayed and compared for the APIs that this host serves.

This host offers what the newest version offers; an older version offers no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from contrib.capture.kafka_node import CLUSTER_ID

from conformance.test_client_metrics_configs_golden import decoded
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.broker.dispatch.routes import Routes
from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.wire.api_names import api_name
from odradek_console.upgrades import kafka_versions
from support.broker import make_broker, make_connection
from support.golden import GOLDEN, NEWEST, OLDER, Exchange, exchanges, golden_files, golden_id
from support.headers import peek_api

LAST = 5
WITHOUT_RECEIVER = "api_versions_v3_without_receiver"
TELEMETRY = {71, 72}
LEVELS = {"eligible.leader.replicas.version": 0}
"""Features with a lower level here than in Kafka; 0 is off."""


class Receiver:
    """A receiver that ignores every payload: with a receiver the host offers the telemetry APIs."""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Ignore the payload."""


def dispatcher_for(path: Path) -> Dispatcher:
    """A fresh broker, with a receiver if Kafka had one."""
    broker = make_broker()
    broker.cluster_id = CLUSTER_ID
    if path.stem != WITHOUT_RECEIVER:
        broker.telemetry.plugin.add_receiver("any", Receiver())
    return Dispatcher(broker, Routes())


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


def supported(message: Any) -> dict[str, tuple[int, int]]:
    """First and last level of each supported feature."""
    return {
        feature.name: (feature.min_version, feature.max_version) for feature in message.supported_features
    }


def offers(rows: Mapping[Any, tuple[int, int]], older: Mapping[Any, tuple[int, int]]) -> bool:
    """Whether ``rows`` has every range of an older version, with the same start."""
    return all(
        key in rows and rows[key][0] == first and rows[key][1] >= last for key, (first, last) in older.items()
    )


def pairs(path: Path) -> Iterator[tuple[Exchange, Any, Any]]:
    """Each exchange with our answer and Kafka's; that to an unknown version stays a frame."""
    dispatcher, connection = dispatcher_for(path), make_connection()
    for exchange in exchanges(path):
        answer = dispatcher.answer(exchange.request, 0, connection)
        assert isinstance(answer, bytes)
        assert exchange.response is not None
        if peek_api(exchange.request)[1] > LAST:
            yield exchange, answer[4:], exchange.response
        else:
            ours = decoded(dispatcher, exchange.request, answer[4:])
            yield exchange, ours, decoded(dispatcher, exchange.request, exchange.response)


@pytest.mark.parametrize("path", golden_files("api_versions_v*", versions=[NEWEST]), ids=golden_id)
def test_served_apis_are_offered_as_kafka_offers_them(path: Path) -> None:
    served = set(Routes())

    for exchange, ours, theirs in pairs(path):
        if isinstance(theirs, bytes):
            assert ours == theirs
            continue
        assert (ours.error_code, ours.throttle_time_ms) == (theirs.error_code, theirs.throttle_time_ms)
        assert ranges(ours, served) == ranges(theirs, served), exchange.label
        assert ours.supported_features == theirs.supported_features, exchange.label
        expected = {
            name: (LEVELS.get(name, levels[0]), LEVELS.get(name, levels[1]))
            for name, levels in finalized(theirs).items()
            if LEVELS.get(name) != 0
        }
        assert finalized(ours) == expected, exchange.label
        assert (ours.finalized_features_epoch < 0) == (theirs.finalized_features_epoch < 0), exchange.label


@pytest.mark.parametrize("path", golden_files("api_versions_v*", versions=[OLDER]), ids=golden_id)
def test_clients_of_the_older_kafka_are_offered_at_least_as_much(path: Path) -> None:
    served = set(Routes())

    for exchange, ours, theirs in pairs(path):
        if isinstance(theirs, bytes):
            continue
        assert ours.error_code == theirs.error_code
        assert offers(ranges(ours, served), ranges(theirs, served)), exchange.label
        assert offers(supported(ours), supported(theirs)), exchange.label


def test_without_a_receiver_only_the_telemetry_apis_are_hidden() -> None:
    path = GOLDEN / NEWEST / f"{WITHOUT_RECEIVER}.hex"

    _, ours, _ = next(pairs(path))

    assert Routes().keys() - {api.api_key for api in ours.api_keys} == TELEMETRY


def test_the_console_knows_the_lowest_versions_that_kafka_serves() -> None:
    _, _, theirs = next(pairs(GOLDEN / NEWEST / f"{WITHOUT_RECEIVER}.hex"))
    served = {api_name(api.api_key): api.min_version for api in theirs.api_keys}
    served["Produce"] = 3  # offered from v0 on, for the sake of librdkafka, and refused below v3

    known: dict[str, int] = {}
    for kafka in kafka_versions():
        known |= kafka.get("lowest", {})

    assert {name: known.get(name, 0) for name in served} == served


def test_every_version_has_a_golden_file() -> None:
    files = golden_files("api_versions_v*", versions=[NEWEST])

    assert {path.stem.split("_")[2] for path in files} == {
        f"v{version}" for version in (*range(LAST + 1), 99)
    }
