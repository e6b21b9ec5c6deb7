"""The watch of a cluster reads its brokers and subscriptions, and tells why it could not."""

from __future__ import annotations

import queue
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek.client.admin import AdminClient
from odradek.client.cluster_watch import NOT_ALLOWED, NOT_OFFERED, ClusterWatch, Observed, poll
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.plugin.config import ConfigError
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from odradek.wire.messages.metadata import MetadataRequest, MetadataResponse, MetadataResponseBroker
from support.hosts import running_host
from support.scripted_broker import HangUp, ScriptedBroker

PATIENCE_S = 10


def metadata(_: Any) -> MetadataResponse:
    return MetadataResponse(
        cluster_id="upstream", brokers=[MetadataResponseBroker(node_id=103, host="broker-103", port=9092)]
    )


def hang_up(_: Any) -> Any:
    raise HangUp


def refused(code: ErrorCode) -> dict[type[Any], Any]:
    """Answers of a broker that refuses to list."""
    return {
        MetadataRequest: metadata,
        ListConfigResourcesRequest: lambda _: ListConfigResourcesResponse(error_code=code),
    }


@contextmanager
def client_of(broker: ScriptedBroker) -> Iterator[AdminClient]:
    with AdminClient(broker.address, timeout_s=PATIENCE_S) as admin:
        yield admin


def set_subscription(admin: AdminClient, name: str, **properties: str) -> None:
    resource = ConfigResource(ResourceType.CLIENT_METRICS, name)
    admin.incremental_alter_configs(
        {resource: [ConfigChange(key.replace("_", "."), value) for key, value in properties.items()]}
    )


def test_subscriptions_are_read_without_defaults(tmp_path: Path) -> None:
    with running_host(tmp_path) as host, AdminClient(host.bootstrap) as admin:
        set_subscription(admin, "slow", metrics="org.apache.kafka.producer.", interval_ms="5000")
        set_subscription(admin, "java", metrics="*", match="client_software_name=apache-kafka-java")

        found = poll(admin, with_subscriptions=True)

        assert found.subscriptions == {
            "slow": {"metrics": "org.apache.kafka.producer.", "interval.ms": "5000"},
            "java": {"metrics": "*", "match": "client_software_name=apache-kafka-java"},
        }
        assert found.cluster_id == host.host.broker.cluster_id
        assert found.nodes == [(host.host.config.broker.node_id, *host.address)]
        assert (found.refusal, found.failure) == (None, None)


def test_a_cluster_without_subscriptions_has_an_empty_set(tmp_path: Path) -> None:
    with running_host(tmp_path) as host, AdminClient(host.bootstrap) as admin:
        assert poll(admin, with_subscriptions=True).subscriptions == {}


@pytest.mark.parametrize(
    ("code", "refusal"),
    [(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, NOT_ALLOWED), (ErrorCode.UNKNOWN_SERVER_ERROR, None)],
)
def test_a_refusal_is_told_apart_from_a_failure(code: ErrorCode, refusal: str | None) -> None:
    with ScriptedBroker(refused(code)) as broker, client_of(broker) as admin:
        found = poll(admin, with_subscriptions=True)

    assert (found.subscriptions, found.refusal) == (None, refusal)
    assert (found.failure is None) is (refusal is not None)
    assert found.nodes == [(103, "broker-103", 9092)]


def test_a_cluster_that_does_not_offer_the_api_refuses() -> None:
    with ScriptedBroker({MetadataRequest: metadata}) as broker, client_of(broker) as admin:
        found = poll(admin, with_subscriptions=True)

    assert (found.cluster_id, found.refusal, found.failure) == ("upstream", NOT_OFFERED, None)


def test_a_broker_that_hangs_up_is_a_failure() -> None:
    answers = {MetadataRequest: metadata, ListConfigResourcesRequest: hang_up}
    with ScriptedBroker(answers) as broker, client_of(broker) as admin:
        found = poll(admin, with_subscriptions=True)

    assert (found.subscriptions, found.refusal) == (None, None)
    assert found.failure is not None


def test_without_subscriptions_only_the_brokers_are_asked_for() -> None:
    with ScriptedBroker({MetadataRequest: metadata}) as broker, client_of(broker) as admin:
        found = poll(admin, with_subscriptions=False)

        assert (found.refusal, found.failure, found.cluster_id) == (None, None, "upstream")
        assert broker.of(ListConfigResourcesRequest) == []


@contextmanager
def watching(connect: Any, interval_ms: int = 100) -> Iterator[tuple[ClusterWatch, queue.Queue[Observed]]]:
    """A watch with the results of its polls."""
    found: queue.Queue[Observed] = queue.Queue()
    watch = ClusterWatch(connect, interval_ms, found.put)
    watch.start()
    try:
        yield watch, found
    finally:
        watch.stop()
    assert not watch.thread.is_alive()


def test_a_change_is_seen_after_the_interval(tmp_path: Path) -> None:
    with (
        running_host(tmp_path) as host,
        AdminClient(host.bootstrap) as admin,
        watching(lambda: AdminClient(host.bootstrap, timeout_s=5)) as (_, found),
    ):
        assert found.get(timeout=PATIENCE_S).subscriptions == {}

        set_subscription(admin, "late", metrics="*")

        while not found.get(timeout=PATIENCE_S).subscriptions:
            pass


def test_a_poke_is_answered_before_the_interval_is_over() -> None:
    with (
        ScriptedBroker(refused(ErrorCode.NONE)) as broker,
        watching(lambda: AdminClient(broker.address, timeout_s=PATIENCE_S), 3_600_000) as (watch, found),
    ):
        found.get(timeout=PATIENCE_S)
        watch.poke()

        assert found.get(timeout=PATIENCE_S).cluster_id == "upstream"


def test_a_cluster_that_is_down_is_asked_again_over_new_connections() -> None:
    down, connects = [True], []

    def connect() -> AdminClient:
        connects.append(1)
        if down:
            raise ConfigError("ssl.truststore.location", "cannot be read")
        return AdminClient(broker.address, timeout_s=PATIENCE_S)

    with ScriptedBroker(refused(ErrorCode.NONE)) as broker, watching(connect) as (_, found):
        assert found.get(timeout=PATIENCE_S).failure == "ssl.truststore.location: cannot be read"
        down.clear()

        while found.get(timeout=PATIENCE_S).failure is not None:
            pass

    assert len(connects) >= 2


def test_a_consumer_of_results_that_raises_does_not_end_the_watch() -> None:
    calls: queue.Queue[int] = queue.Queue()

    def fail(_: Observed) -> None:
        calls.put(1)
        raise RuntimeError("closed loop")

    with ScriptedBroker(refused(ErrorCode.NONE)) as broker:
        watch = ClusterWatch(lambda: AdminClient(broker.address, timeout_s=PATIENCE_S), 100, fail)
        watch.start()
        calls.get(timeout=PATIENCE_S)
        calls.get(timeout=PATIENCE_S)
        watch.stop()
