"""Quotas of `odradek gateway` in front of a host, in real time."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.api_versions import ApiVersionsRequest
from odradek.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from odradek.wire.messages.list_groups import ListGroupsRequest
from odradek.wire.messages.produce import ProduceRequest
from support.data_requests import produce_request
from support.gateways import GatewayProcess, gateway_of
from support.hosts import ThreadedHost, running_host
from support.limited_clients import CLIENT_ID, MEGABYTE, consume, create_topic, limit, produce
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.ci

SHORT_WINDOWS = ("quota.window.num=3", "controller.quota.window.num=3")
"""Two seconds' worth is allowed at once."""
QUOTAS = (
    f"quotas.noisy.client-id={CLIENT_ID}",
    f"quotas.noisy.producer_byte_rate={MEGABYTE}",
    f"quotas.noisy.consumer_byte_rate={MEGABYTE}",
    "quotas.raw.client-id=raw",
    "quotas.raw.producer_byte_rate=10000",
    "quotas.both.client-id=both",
    "quotas.both.producer_byte_rate=10000",
    "quotas.builder.client-id=builder",
    "quotas.builder.controller_mutation_rate=20",
)


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("upstream"), *SHORT_WINDOWS) as host:
        create_topic(host)
        yield host


@pytest.fixture(scope="module")
def gateway(host: ThreadedHost, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GatewayProcess]:
    directory = tmp_path_factory.mktemp("gateway")
    with gateway_of(host.bootstrap, directory, *SHORT_WINDOWS, *QUOTAS) as process:
        yield process


def dialed(gateway: GatewayProcess, client_id: str) -> WireClient:
    host, _, port = gateway.bootstrap.rpartition(":")
    return WireClient((host, int(port)), client_id, timeout_s=30)


def refused_request(size: int) -> ProduceRequest:
    """A request for a topic that does not exist: refused by the broker, and charged."""
    return produce_request("no", bytes(size))


def test_a_producer_is_throttled_to_its_quota_and_another_is_not(gateway: GatewayProcess) -> None:
    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(produce, gateway, 4)
        neighbor = pool.submit(produce, gateway, 60, "neighbor", 12 * MEGABYTE)

    assert noisy.result().total < (noisy.result().lasted_s + 3) * MEGABYTE
    assert neighbor.result().total >= 12 * MEGABYTE


def test_a_consumer_is_throttled_to_its_quota_and_another_is_not(gateway: GatewayProcess) -> None:
    assert produce(gateway, 60, client_id="filler", total=12 * MEGABYTE).total >= 12 * MEGABYTE

    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(consume, gateway, 4, least=MEGABYTE)
        neighbor = pool.submit(consume, gateway, 60, "neighbor", 12 * MEGABYTE)

    assert MEGABYTE < noisy.result().total < (noisy.result().lasted_s + 3) * MEGABYTE
    assert neighbor.result().total >= 12 * MEGABYTE


def test_a_throttled_client_is_told_and_not_read(gateway: GatewayProcess) -> None:
    with dialed(gateway, "raw") as client:
        begin_s = time.monotonic()
        told_ms = client.send(refused_request(30_000), 9).throttle_time_ms
        client.send(ListGroupsRequest())
        waited_s = time.monotonic() - begin_s

    assert 900 < told_ms < 1_200  # 30 kB at 10 kB/s, two seconds of it in advance
    assert waited_s >= told_ms / 1000 - 0.05


@pytest.mark.parametrize(("theirs", "told_ms"), [(5_000, 4_000), (500_000, 1_000)])
def test_the_larger_of_both_throttle_times_is_told(
    host: ThreadedHost, tmp_path: Path, theirs: int, told_ms: int
) -> None:
    entity = ClientQuotaEntity(client_id="both")
    limit(host, entity, producer_byte_rate=theirs)

    with (
        gateway_of(host.bootstrap, tmp_path, *SHORT_WINDOWS, *QUOTAS) as gateway,
        dialed(gateway, "both") as client,
    ):
        told = client.send(refused_request(30_000), 9)

    assert told.throttle_time_ms == pytest.approx(told_ms, abs=300)
    limit(host, entity, producer_byte_rate=None)


def test_topics_beyond_the_quota_are_refused_until_clients_have_waited(gateway: GatewayProcess) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    errors: list[int] = []
    with dialed(gateway, "builder") as client:
        while len(errors) < 10 and not any(errors):  # after a pause of seconds a second one is allowed
            topic = CreatableTopic(name=f"wide-{len(errors)}", num_partitions=80, replication_factor=1)
            errors.append(client.send(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code)
    builder = admin.AdminClient({"bootstrap.servers": gateway.bootstrap, "client.id": "builder"})

    builder.create_topics([admin.NewTopic("later", 1, 1)])["later"].result(30)

    *created, refused = errors
    assert created
    assert created == [ErrorCode.NONE] * len(created)
    assert refused == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    topics = builder.list_topics(timeout=30).topics
    assert {name for name in topics if name.startswith("wide-")} == {f"wide-{n}" for n in range(len(created))}
    assert "later" in topics


def test_connections_beyond_the_rate_of_an_address_are_closed(host: ThreadedHost, tmp_path: Path) -> None:
    quota = "quotas.addresses.ip=<default>", "quotas.addresses.connection_creation_rate=2"
    answered, closed = 0, 0

    with gateway_of(host.bootstrap, tmp_path, *SHORT_WINDOWS, *quota) as gateway:
        while answered < 100 and not closed:
            with dialed(gateway, "many") as client:
                try:
                    client.send(ApiVersionsRequest(), 0)
                    answered += 1
                except (ConnectionError, TimeoutError):
                    closed += 1

    assert answered >= 2
    assert closed == 1


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.xdist_group("bandwidth")
def test_a_producer_converges_to_its_quota(host: ThreadedHost, tmp_path: Path) -> None:
    # windows of 11 s would give a client of 30 s two bursts, and the rate would depend on when they come
    with gateway_of(host.bootstrap, tmp_path / "gateway", *SHORT_WINDOWS, *QUOTAS[:2]) as gateway:
        progress = produce(gateway, 30)

    assert progress.rates().hold_to(MEGABYTE), progress.rates()


def test_a_hangup_reloads_the_quotas(host: ThreadedHost, tmp_path: Path) -> None:
    file = tmp_path / "gateway.toml"
    file.write_text("")
    with gateway_of(host.bootstrap, tmp_path / "data", config=file) as process:
        free = throttle_ms(process, "late")
        file.write_text('[quotas.late]\nclient-id = "late"\nproducer_byte_rate = 1000\n')
        process.process.send_signal(signal.SIGHUP)
        wait_until(
            lambda: any("configuration reloaded" in line for line in process.errors), lambda: process.errors
        )
        throttled = throttle_ms(process, "late")
        status = process.terminate()

    assert free == 0
    assert throttled > 0
    assert status == 0


def throttle_ms(gateway: GatewayProcess, client_id: str) -> int:
    with dialed(gateway, client_id) as client:
        client.introduce()
        return int(client.send(refused_request(100_000)).throttle_time_ms)
