from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from odradek.broker.dispatch.routes import Routes
from odradek.broker.dispatch.served import SERVED
from odradek.plugin import ClientTelemetryPayload, RequestContext
from odradek.telemetry.accepted_push import AcceptedPush
from odradek.wire.api_names import NAMES
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.broker import BrokerClient

VERSIONS = range(ApiVersionsRequest.VERSIONS.first, ApiVersionsRequest.VERSIONS.last + 1)
WITH_NAMES, WITHOUT_NAMES = VERSIONS[3:], VERSIONS[:3]
TELEMETRY = {71, 72}
ROUTES = Routes()
Ranges = Mapping[int, tuple[int, int]]


class Receiver:
    """A receiver that ignores every payload."""

    def export_metrics(self, context: RequestContext, payload: ClientTelemetryPayload) -> None:
        """Ignore the payload."""


class Keeper:
    """Keeps every push."""

    def take(self, push: AcceptedPush) -> bool:
        return True


def ask(client: BrokerClient, version: int = 4, name: str = "test", software_version: str = "1.0") -> Any:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=software_version)
    return client.send(request, version)


def ranges(response: Any) -> Ranges:
    return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}


@pytest.fixture
def client() -> BrokerClient:
    """A client of a host with a receiver."""
    client = BrokerClient()
    client.broker.telemetry.plugin.add_receiver("any", Receiver())
    return client


@pytest.fixture
def offered(client: BrokerClient) -> Ranges:
    """The APIs that a host with a receiver advertises."""
    return ranges(ask(client))


@pytest.mark.parametrize("version", VERSIONS)
def test_the_list_is_the_same_in_every_version_and_in_order(
    client: BrokerClient, version: int, offered: Ranges
) -> None:
    response = ask(client, version)

    assert ranges(response) == offered
    assert [row.api_key for row in response.api_keys] == sorted(offered)
    assert (response.error_code, response.throttle_time_ms) == (0, 0)


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_receiver_the_telemetry_apis_are_hidden(version: int, offered: Ranges) -> None:
    response = ask(BrokerClient(), version)

    assert offered.keys() - ranges(response).keys() == TELEMETRY


def test_registering_a_receiver_later_shows_them(offered: Ranges) -> None:
    client = BrokerClient()
    ask(client)
    client.broker.telemetry.plugin.add_receiver("late", Receiver())

    response = ask(client)

    assert ranges(response) == offered


@pytest.mark.parametrize("version", WITHOUT_NAMES)
def test_versions_without_tags_list_no_features(client: BrokerClient, version: int) -> None:
    response = ask(client, version)

    assert (response.supported_features, response.finalized_features) == ([], [])


@pytest.mark.parametrize("version", WITH_NAMES)
def test_a_feature_with_minimum_level_0_is_supported_from_version_4_on(
    client: BrokerClient, version: int
) -> None:
    response = ask(client, version)

    zeros = [feature.name for feature in client.broker.features if feature.min_version == 0]
    listed = {feature.name for feature in response.supported_features}
    assert zeros
    assert [name in listed for name in zeros] == [version >= 4] * len(zeros)
    finalized = {feature.name: feature.max_version_level for feature in response.finalized_features}
    assert finalized == client.broker.features.finalized()
    assert response.finalized_features_epoch >= 0  # below, clients ignore the finalized features


@pytest.mark.parametrize("version", WITH_NAMES)
@pytest.mark.parametrize("text", ["a", "7", "apache-kafka-java", "1.0.0-SNAPSHOT", "a--b", "a" * 300])
def test_software_is_remembered_for_the_connection(client: BrokerClient, version: int, text: str) -> None:
    ask(client, version, text, text + ".x")

    connection = client.connection
    assert (connection.client_software_name, connection.client_software_version) == (text, text + ".x")


@pytest.mark.parametrize("version", WITHOUT_NAMES)
def test_versions_without_names_leave_the_software_unknown(client: BrokerClient, version: int) -> None:
    ask(client, version)

    assert client.connection.client_software_name == "unknown"


@pytest.mark.parametrize("version", WITH_NAMES)
@pytest.mark.parametrize(
    "text", ["", "-x", "x-", ".", "a b", "1.0!", "é", "a\n", "\0", "x_y", "a" * 300 + "!"]
)
@pytest.mark.parametrize("good_name", [True, False])
def test_a_malformed_software_name_is_refused(
    client: BrokerClient, version: int, text: str, good_name: bool
) -> None:
    response = ask(client, version, *(("good", text) if good_name else (text, "1.0")))

    assert (response.error_code, response.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert client.connection.client_software_name == "unknown"
    assert client.connection.client_software_version == "unknown"


def test_after_a_refusal_a_valid_name_is_accepted(client: BrokerClient) -> None:
    ask(client, name="-x")

    response = ask(client, name="good")

    assert response.error_code == ErrorCode.NONE
    assert client.connection.client_software_name == "good"


CLUSTER, NODE = "the cluster", 1
OTHER_CLUSTER, OTHER_NODE = "another", 2


def expecting(client: BrokerClient, cluster_id: str | None, node_id: int, name: str = "test") -> Any:
    """Ask as a client that expects a cluster and a node."""
    client.broker.cluster_id = CLUSTER
    return client.send(
        ApiVersionsRequest(
            client_software_name=name,
            client_software_version="1.0",
            cluster_id=cluster_id,
            node_id=node_id,
        ),
        5,
    )


@pytest.mark.parametrize(("cluster_id", "node_id"), [(None, -1), (CLUSTER, NODE)])
def test_a_client_that_expects_this_node_or_none_gets_the_list(
    client: BrokerClient, offered: Ranges, cluster_id: str | None, node_id: int
) -> None:
    response = expecting(client, cluster_id, node_id)

    assert (response.error_code, ranges(response)) == (ErrorCode.NONE, offered)
    assert response.finalized_features


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "code"),
    [
        (CLUSTER, OTHER_NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        (OTHER_CLUSTER, NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        (OTHER_CLUSTER, OTHER_NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", NODE, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER, -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER, -1, ErrorCode.INVALID_REQUEST),
        (OTHER_CLUSTER, -1, ErrorCode.INVALID_REQUEST),
        ("", -1, ErrorCode.INVALID_REQUEST),
        (None, NODE, ErrorCode.INVALID_REQUEST),
        (None, OTHER_NODE, ErrorCode.INVALID_REQUEST),
        (None, -2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_another_node_gets_an_error_and_no_apis_and_the_connection_goes_on(
    client: BrokerClient, offered: Ranges, cluster_id: str | None, node_id: int, code: int
) -> None:
    response = expecting(client, cluster_id, node_id)

    assert (response.error_code, response.api_keys) == (code, [])
    assert (response.supported_features, response.finalized_features) == ([], [])
    assert response.finalized_features_epoch == -1
    assert ranges(ask(client)) == offered


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "software"),
    [(OTHER_CLUSTER, NODE, "test"), (CLUSTER, -1, "unknown"), (None, NODE, "unknown")],
)
def test_only_a_valid_request_names_the_software(
    client: BrokerClient, cluster_id: str | None, node_id: int, software: str
) -> None:
    expecting(client, cluster_id, node_id)

    assert client.connection.client_software_name == software


def test_a_malformed_software_name_is_refused_before_the_node_is_compared(client: BrokerClient) -> None:
    response = expecting(client, OTHER_CLUSTER, NODE, name="-x")

    assert response.error_code == ErrorCode.INVALID_REQUEST


def covers(offered: Ranges, key: int, first: int, last: int) -> bool:
    return key in offered and offered[key][0] <= first and offered[key][1] >= last


@pytest.mark.parametrize(
    ("key", "first", "last", "why"),
    [
        (0, 0, 3, "librdkafka 2.5 does not compress with gzip, snappy and lz4 unless Produce 0 is there"),
        (0, 3, 3, "record batches of magic 2"),
        (1, 4, 4, "record batches of magic 2"),
        (0, 7, 7, "zstd"),
        (1, 10, 10, "zstd"),
        (2, 1, 1, "look-up of offsets by time"),
        (10, 0, 0, "librdkafka 2.5 never joins a group unless FindCoordinator 0 is there"),
        (22, 0, 0, "librdkafka 2.5 takes idempotence to be missing unless InitProducerId 0 is there"),
        (71, 0, 0, "telemetry"),
        (72, 0, 0, "telemetry"),
        (18, 3, 3, "librdkafka asks in v3 and falls back to v0, which loses its name"),
        (3, 10, 12, "Produce 13 needs topic ids, which Metadata tells"),
    ],
)
def test_librdkafka_finds_the_versions_it_infers_its_features_from(
    offered: Ranges, key: int, first: int, last: int, why: str
) -> None:
    assert covers(offered, key, first, last), why


@pytest.mark.parametrize(("key", "last"), [(2, 10), (1, 17)])
def test_kafka_python_takes_the_host_for_a_broker_of_version_4(offered: Ranges, key: int, last: int) -> None:
    assert offered[key][1] >= last


@pytest.mark.parametrize(("key", "newest_known"), [(0, 7), (1, 11), (2, 3), (3, 5)])
def test_aiokafka_finds_a_version_it_knows(offered: Ranges, key: int, newest_known: int) -> None:
    assert offered[key][0] <= newest_known


def test_the_versions_that_are_listed_are_those_declared_but_of_two_apis() -> None:
    differing = {NAMES[key] for key, route in ROUTES.items() if SERVED[key] != route.request.VERSIONS}
    not_parsed = {NAMES[key] for key, route in ROUTES.items() if SERVED[key] != route.versions}

    assert differing == {"Produce", "InitProducerId"}
    assert not_parsed == {"Produce"}


def test_a_sink_is_enough_to_advertise_the_telemetry_apis() -> None:
    client = BrokerClient()
    before = ranges(ask(client))

    client.broker.sink = Keeper()

    assert not TELEMETRY & before.keys()
    assert ranges(ask(client)).keys() >= TELEMETRY
