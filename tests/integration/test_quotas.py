"""librdkafka under bandwidth quotas, over real sockets in real time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from support.hosts import ThreadedHost, running_host
from support.limited_clients import CLIENT_ID, MEGABYTE, TOPIC, consume, produce
from support.progress import Progress

SHORT_WINDOWS = ("quota.window.num=3",)
ENTITIES = {
    "user": ClientQuotaEntity(user="ANONYMOUS"),
    "client-id": ClientQuotaEntity(client_id=CLIENT_ID),
    "default-user": ClientQuotaEntity(user=DEFAULT),
    "default-client-id": ClientQuotaEntity(client_id=DEFAULT),
}


@pytest.fixture
def host(tmp_path: Path) -> Iterator[ThreadedHost]:
    with running_host(tmp_path, *SHORT_WINDOWS) as host:
        host.call(lambda: host.host.broker.topics.create(TOPIC, 1, {}))
        yield host


def limit(host: ThreadedHost, entity: ClientQuotaEntity, **values: float) -> None:
    host.call(lambda: host.host.broker.quotas.apply(entity, values))


def fill(host: ThreadedHost, megabytes: int) -> None:
    """Produce records for consumers."""
    filled = produce(host, 60, client_id="filler", total=megabytes * MEGABYTE)
    assert filled.total >= megabytes * MEGABYTE


def metric(host: ThreadedHost, name: str, group: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The values of every budget of a group, by tags."""
    rows: Any = host.call(lambda: list(host.host.broker.quotas.measured(host.host.clock.monotonic_ms())))
    return {row.name.tags: row.value for row in rows if (row.name.name, row.name.group) == (name, group)}


def test_a_producer_is_throttled_to_its_quota_and_another_is_not(host: ThreadedHost) -> None:
    limit(host, ENTITIES["client-id"], producer_byte_rate=MEGABYTE)

    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(produce, host, 4)
        neighbor = pool.submit(produce, host, 4, "neighbor", 12 * MEGABYTE)

    # two seconds' worth is allowed at once; requests in flight when the quota is exhausted are added
    assert noisy.result().total < 7 * MEGABYTE
    assert neighbor.result().total >= 12 * MEGABYTE
    throttled_ms = metric(host, "throttle-time", "Produce")
    assert [tags for tags, mean in throttled_ms.items() if mean > 0] == [
        (("user", ""), ("client-id", CLIENT_ID))
    ]


def test_a_consumer_is_throttled_to_its_quota_and_another_is_not(host: ThreadedHost) -> None:
    fill(host, 12)
    limit(host, ENTITIES["client-id"], consumer_byte_rate=MEGABYTE)

    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(consume, host, 4)
        neighbor = pool.submit(consume, host, 4, "neighbor")

    assert MEGABYTE < noisy.result().total < 7 * MEGABYTE
    assert neighbor.result().total >= 12 * MEGABYTE


def test_setting_and_removing_a_quota_takes_effect_at_once(host: ThreadedHost) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(produce, host, 3)
        time.sleep(0.5)
        limit(host, ENTITIES["default-client-id"], producer_byte_rate=10_000)
        time.sleep(0.5)
        used = metric(host, "queue-size", "Produce")
        limit(host, ENTITIES["default-client-id"], producer_byte_rate=1e12)
        running.result()

    assert used == {(): 1}


def converged_producer(data_dir: Path, entity: ClientQuotaEntity) -> Progress:
    """The progress of a producer, for a minute."""
    with running_host(data_dir) as host:  # Kafka's own windows: ten seconds' worth at once
        host.call(lambda: host.host.broker.topics.create(TOPIC, 1, {}))
        limit(host, entity, producer_byte_rate=MEGABYTE)
        return produce(host, 60)


def converged_consumer(data_dir: Path, entity: ClientQuotaEntity) -> Progress:
    """The progress of a consumer, for a minute."""
    with running_host(data_dir) as host:
        host.call(lambda: host.host.broker.topics.create(TOPIC, 1, {}))
        fill(host, 80)
        limit(host, entity, consumer_byte_rate=MEGABYTE)
        return consume(host, 60)


@pytest.fixture(scope="module")
def converged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Progress]:
    """The progress of every client, by function and entity. All wait most of their minute, so they run at the
    same time, each with a host of its own.
    """
    with ThreadPoolExecutor(2 * len(ENTITIES)) as pool:
        runs = {
            f"{client.__name__} {name}": pool.submit(client, tmp_path_factory.mktemp("quota"), entity)
            for client in (converged_producer, converged_consumer)
            for name, entity in ENTITIES.items()
        }
        return {name: run.result() for name, run in runs.items()}


@pytest.mark.slow
@pytest.mark.xdist_group("bandwidth")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("entity", ENTITIES)
def test_a_producer_converges_to_its_quota(converged: dict[str, Progress], entity: str) -> None:
    progress = converged[f"converged_producer {entity}"]

    assert progress.rate_after(15) == pytest.approx(MEGABYTE, rel=0.05)


@pytest.mark.slow
@pytest.mark.xdist_group("bandwidth")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("entity", ENTITIES)
def test_a_consumer_converges_to_its_quota(converged: dict[str, Progress], entity: str) -> None:
    progress = converged[f"converged_consumer {entity}"]

    assert progress.rate_between_bursts() == pytest.approx(MEGABYTE, rel=0.05)
