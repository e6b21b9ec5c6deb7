from __future__ import annotations

import pytest

from odradek.broker.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from odradek.broker.broker_settings import BrokerSettings, Endpoint
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_cluster import DescribeClusterRequest
from support.broker import BrokerClient, make_broker

VERSIONS = range(DescribeClusterRequest.VERSIONS.first, DescribeClusterRequest.VERSIONS.last + 1)


@pytest.fixture
def client() -> BrokerClient:
    return BrokerClient(make_broker(settings=BrokerSettings(node_id=5)))


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("fenced", [True, False])
def test_the_cluster_is_one_broker_which_is_also_the_controller(
    client: BrokerClient, version: int, fenced: bool
) -> None:
    response = client.send(DescribeClusterRequest(include_fenced_brokers=fenced), version)

    assert (response.error_code, response.error_message, response.endpoint_type) == (0, None, 1)
    assert (response.cluster_id, response.controller_id) == (client.broker.cluster_id, 5)
    assert [(row.broker_id, row.host, row.port, row.rack, row.is_fenced) for row in response.brokers] == [
        (5, "127.0.0.1", 9092, None, False)
    ]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("asked", "bits"), [(True, CLUSTER_OPERATIONS), (False, NOT_ASKED_FOR)])
def test_authorized_operations_are_returned_on_request(
    client: BrokerClient, version: int, asked: bool, bits: int
) -> None:
    response = client.send(DescribeClusterRequest(include_cluster_authorized_operations=asked), version)

    assert response.cluster_authorized_operations == bits


def test_the_address_is_that_of_the_clients_listener(client: BrokerClient) -> None:
    client.broker.endpoints["OTHER"] = Endpoint("other.example", 1234)
    client.connection.listener_name = "OTHER"

    response = client.send(DescribeClusterRequest())

    assert [(row.host, row.port) for row in response.brokers] == [("other.example", 1234)]


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "code"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (3, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (-1, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_brokers_can_be_described(
    client: BrokerClient, version: int, endpoint_type: int, code: ErrorCode
) -> None:
    response = client.send(DescribeClusterRequest(endpoint_type=endpoint_type), version)

    assert (response.error_code, response.brokers, response.controller_id) == (code, [], -1)
    assert response.error_message
