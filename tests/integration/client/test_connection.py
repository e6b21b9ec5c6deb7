from __future__ import annotations

import socket
import threading

import pytest
from contrib.capture.ports import free_port

import odradek
from odradek.client.connection import Connection
from odradek.client.errors import ClientError, ConnectFailed, RequestFailed, TimedOut, UnsupportedVersion
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from odradek.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from odradek.wire.types import Versions, between, only
from support.headers import response_header
from support.scripted_broker import HangUp, ScriptedBroker, Silence


def described(request: object) -> DescribeClusterResponse:
    return DescribeClusterResponse(cluster_id="prague", controller_id=1)


def listed(request: object) -> ListConfigResourcesResponse:
    return ListConfigResourcesResponse(config_resources=[ConfigResource(resource_name="sub-1")])


def connect(broker: ScriptedBroker, timeout_s: float = 5) -> Connection:
    return Connection("127.0.0.1", broker.port, client_id="test", timeout_s=timeout_s)


def answer_as_a_web_server(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(4096)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_the_first_request_names_the_client_in_the_newest_version() -> None:
    with ScriptedBroker() as broker, connect(broker):
        asked = broker.asked[0]

    assert (asked.version, asked.client_id) == (5, "test")
    assert asked.request.client_software_name == "odradek"
    assert asked.request.client_software_version == odradek.__version__


@pytest.mark.parametrize(
    ("known", "second"), [(between(0, 4), 4), (between(0, 3), 3), (between(0, 2), 2), (only(0), 0)]
)
def test_an_older_broker_is_asked_again_in_a_version_it_supports(known: Versions, second: int) -> None:
    with (
        ScriptedBroker({DescribeClusterRequest: described}, api_versions=known) as broker,
        connect(broker) as it,
    ):
        answer = it.send(DescribeClusterRequest())

        assert answer.cluster_id == "prague"
        assert broker.versions_of(ApiVersionsRequest) == [5, second]


def test_a_refusal_without_a_range_means_version_0() -> None:
    class Oldest(ScriptedBroker):
        def too_new(self) -> ApiVersionsResponse:
            return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)

    with Oldest(api_versions=only(0)) as broker, connect(broker) as connection:
        offered = connection.offered

    assert offered == {18: only(0)}
    assert broker.versions_of(ApiVersionsRequest) == [5, 0]


def test_another_error_of_api_versions_is_reported() -> None:
    def refused(request: object) -> ApiVersionsResponse:
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)

    with ScriptedBroker({ApiVersionsRequest: refused}) as broker, pytest.raises(RequestFailed) as failure:
        connect(broker)

    assert failure.value.code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("theirs", "version"), [(between(0, 1), 1), (between(0, 9), 1), (only(0), 0), (between(1, 2), 1)]
)
def test_a_request_is_sent_in_the_highest_common_version(theirs: Versions, version: int) -> None:
    with (
        ScriptedBroker({ListConfigResourcesRequest: listed}, {74: theirs}) as broker,
        connect(broker) as connection,
    ):
        answer = connection.send(ListConfigResourcesRequest())

        assert answer.config_resources[0].resource_name == "sub-1"
        assert broker.versions_of(ListConfigResourcesRequest) == [version]


@pytest.mark.parametrize(
    ("offered", "message"),
    [
        ({}, "the broker does not support ListConfigResources"),
        ({74: between(2, 3)}, "needs a version from 0 to 1, the broker supports 2 to 3"),
    ],
)
def test_without_a_common_version_nothing_is_sent(offered: dict[int, Versions], message: str) -> None:
    with ScriptedBroker({}, offered) as broker, connect(broker) as connection:
        with pytest.raises(UnsupportedVersion, match=message):
            connection.send(ListConfigResourcesRequest())

        assert len(broker.asked) == 1
        assert not connection.broken


def test_a_request_that_needs_a_newer_version_is_refused() -> None:
    with (
        ScriptedBroker({ListConfigResourcesRequest: listed}, {74: only(0)}) as broker,
        connect(broker) as connection,
        pytest.raises(UnsupportedVersion, match="needs a version from 1 to 1, the broker supports 0 to 0"),
    ):
        connection.send(ListConfigResourcesRequest(resource_types=[2]), least_version=1)


def test_a_refused_connection_is_reported_with_the_address() -> None:
    port = free_port()

    with pytest.raises(ConnectFailed, match=f"127.0.0.1:{port}: connection refused"):
        Connection("127.0.0.1", port, timeout_s=1)


def test_an_unknown_host_is_reported() -> None:
    with pytest.raises(ConnectFailed, match=r"no-such-host\.invalid:9092: "):
        Connection("no-such-host.invalid", 9092, timeout_s=1)


@pytest.mark.parametrize("host", ["a..b", "x" * 64 + ".example"])
def test_an_invalid_host_name_is_reported(host: str) -> None:
    with pytest.raises(ConnectFailed, match="not a valid host name"):
        Connection(host, 9092)


def test_a_silent_broker_times_out() -> None:
    def silent(request: object) -> None:
        raise Silence

    with ScriptedBroker({DescribeClusterRequest: silent}) as broker, connect(broker) as connection:
        connection.timeout_s = 0.2
        with pytest.raises(TimedOut, match=r"no answer within 0\.2 s"):
            connection.send(DescribeClusterRequest())

        assert connection.broken


def test_a_closed_connection_is_reported() -> None:
    def rude(request: object) -> None:
        raise HangUp

    with (
        ScriptedBroker({DescribeClusterRequest: rude}) as broker,
        connect(broker) as connection,
        pytest.raises(ConnectFailed, match=r"closed the connection|reset"),
    ):
        connection.send(DescribeClusterRequest())


def test_a_listener_that_has_answered_does_not_require_a_login() -> None:
    answers = iter([DescribeClusterResponse()])

    def once(request: object) -> object:
        try:
            return next(answers)
        except StopIteration:
            raise HangUp from None

    with ScriptedBroker({DescribeClusterRequest: once}) as broker, connect(broker) as connection:
        connection.send(DescribeClusterRequest())
        with pytest.raises(ConnectFailed) as failure:
            connection.send(DescribeClusterRequest())

    assert "login" not in str(failure.value)


def test_an_answer_to_another_request_ends_the_connection() -> None:
    def other(request: object) -> bytes:
        return response_header(77, flexible=True) + bytes(40)

    with ScriptedBroker({DescribeClusterRequest: other}) as broker, connect(broker) as connection:
        with pytest.raises(ConnectFailed, match="response to request 77, expected 2"):
            connection.send(DescribeClusterRequest())

        assert connection.broken


def test_an_unreadable_answer_is_a_client_error() -> None:
    def cut(request: object) -> bytes:
        return response_header(2, flexible=True) + b"\0\0"

    with (
        ScriptedBroker({DescribeClusterRequest: cut}) as broker,
        connect(broker) as connection,
        pytest.raises(ConnectFailed, match="unreadable DescribeClusterResponse"),
    ):
        connection.send(DescribeClusterRequest())


def test_a_server_that_does_not_speak_kafka_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        web = threading.Thread(target=answer_as_a_web_server, args=(server,))
        web.start()

        with pytest.raises(ConnectFailed, match="is this a Kafka listener"):
            Connection("127.0.0.1", server.getsockname()[1], timeout_s=5)

        web.join(5)


def test_a_value_that_cannot_be_encoded_is_a_client_error() -> None:
    with (
        ScriptedBroker({ListConfigResourcesRequest: listed}) as broker,
        connect(broker) as connection,
        pytest.raises(ClientError, match="cannot be encoded"),
    ):
        connection.send(ListConfigResourcesRequest(resource_types=[1000]))


def test_unknown_apis_are_ignored() -> None:
    def offered(request: object) -> ApiVersionsResponse:
        return ApiVersionsResponse(api_keys=[ApiVersion(api_key=999, min_version=0, max_version=7)])

    with ScriptedBroker({ApiVersionsRequest: offered}) as broker, connect(broker) as connection:
        versions = connection.offered

    assert versions == {999: between(0, 7)}
