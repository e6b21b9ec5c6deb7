"""librdkafka under bandwidth quotas, over real sockets in real time."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from support.charges import Charges, watched
from support.hosts import ThreadedHost, running_host
from support.limited_clients import CLIENT_ID, MEGABYTE, consume, create_topic, limit, produce
from support.progress import Progress
from support.waiting import wait_until

READ_WITHIN_S = 0.25
"""A client is read again soon after its throttle time, even on a busy machine; the median counts."""
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
        create_topic(host)
        yield host


def fill(host: ThreadedHost, megabytes: int) -> None:
    """Produce records for consumers."""
    filled = produce(host, 60, client_id="filler", total=megabytes * MEGABYTE)
    assert filled.total >= megabytes * MEGABYTE


def metric(host: ThreadedHost, name: str, group: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The values of every budget of a group, by tags."""
    rows: Any = host.call(lambda: list(host.host.broker.quotas.measured(host.host.clock.monotonic_ms())))
    return {row.name.tags: row.value for row in rows if (row.name.name, row.name.group) == (name, group)}


@pytest.mark.ci  # waits for real seconds
def test_a_producer_is_throttled_to_its_quota_and_another_is_not(host: ThreadedHost) -> None:
    limit(host, ENTITIES["client-id"], producer_byte_rate=MEGABYTE)

    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(produce, host, 4)
        neighbor = pool.submit(produce, host, 60, "neighbor", 12 * MEGABYTE)

    # two seconds' worth is allowed at once; requests in flight when the quota is exhausted are added
    assert noisy.result().total < (noisy.result().lasted_s + 3) * MEGABYTE
    assert neighbor.result().total >= 12 * MEGABYTE
    throttled_ms = metric(host, "throttle-time", "Produce")
    assert [tags for tags, mean in throttled_ms.items() if mean > 0] == [
        (("user", ""), ("client-id", CLIENT_ID))
    ]


@pytest.mark.ci  # waits for real seconds
def test_a_consumer_is_throttled_to_its_quota_and_another_is_not(host: ThreadedHost) -> None:
    fill(host, 12)
    limit(host, ENTITIES["client-id"], consumer_byte_rate=MEGABYTE)

    with ThreadPoolExecutor(2) as pool:
        noisy = pool.submit(consume, host, 4, least=MEGABYTE)
        neighbor = pool.submit(consume, host, 60, "neighbor", 12 * MEGABYTE)

    assert MEGABYTE < noisy.result().total < (noisy.result().lasted_s + 3) * MEGABYTE
    assert neighbor.result().total >= 12 * MEGABYTE


def test_setting_and_removing_a_quota_takes_effect_at_once(host: ThreadedHost) -> None:
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(produce, host, 60, total=3 * MEGABYTE)
        limit(host, ENTITIES["default-client-id"], producer_byte_rate=100_000)
        wait_until(lambda: metric(host, "queue-size", "Produce") == {(): 1}, "not throttled")
        limit(host, ENTITIES["default-client-id"], producer_byte_rate=1e12)

    assert running.result().total >= 3 * MEGABYTE


@dataclass(frozen=True, slots=True)
class Converged:
    """A minute of a client, by its own clock and by the charges of the host."""

    progress: Progress
    charges: Charges


def converged_producer(data_dir: Path, entity: ClientQuotaEntity) -> Converged:
    """A producer, for a minute."""
    with running_host(data_dir) as host:  # Kafka's own windows: ten seconds' worth at once
        create_topic(host)
        limit(host, entity, producer_byte_rate=MEGABYTE)
        with watched(host.host.broker.quotas.produce, MEGABYTE, client_id=CLIENT_ID) as charges:
            return Converged(produce(host, 60), charges)


def converged_consumer(data_dir: Path, entity: ClientQuotaEntity) -> Converged:
    """A consumer, for a minute."""
    with running_host(data_dir) as host:
        create_topic(host)
        fill(host, 80)
        limit(host, entity, consumer_byte_rate=MEGABYTE)
        with watched(host.host.broker.quotas.fetch, MEGABYTE, client_id=CLIENT_ID) as charges:
            return Converged(consume(host, 60), charges)


@pytest.fixture(scope="module")
def converged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Converged]:
    """The minute of every client, by function and entity. All wait most of their minute, so they run at the
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
@pytest.mark.nightly
@pytest.mark.xdist_group("bandwidth")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("entity", ENTITIES)
@pytest.mark.parametrize("client", ["producer", "consumer"])
def test_a_client_converges_to_its_quota(converged: dict[str, Converged], client: str, entity: str) -> None:
    found = converged[f"converged_{client} {entity}"]

    assert found.charges.wrong_ms == []
    assert found.charges.progress.lag_s() < READ_WITHIN_S
    assert found.progress.rates().hold_to(MEGABYTE), found.progress.rates()
