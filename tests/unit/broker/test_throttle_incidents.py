"""A host tells which quota holds a client back, and for how long."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import pytest

from odradek.broker.dispatch.throttling import throttle_labels
from odradek.findings.incidents import THROTTLED
from odradek.plugin.client_quota import ClientQuotaEntity
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.incidents import Incidents
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from support.batches import batch_of
from support.broker import BrokerClient, make_broker


class Heard:
    def __init__(self) -> None:
        self.told: list[tuple[ClientKey, str, dict[str, str], int]] = []

    def lasts(
        self, key: ClientKey, metric: str, labels: Mapping[str, str], time_ms: int, _connection_id: str
    ) -> None:
        self.told.append((key, metric, dict(labels), time_ms))


def produce(size: int) -> ProduceRequest:
    partition = PartitionProduceData(index=0, records=batch_of(b"v" * size))
    return ProduceRequest(acks=1, topic_data=[TopicProduceData(name="orders", partition_data=[partition])])


def test_a_throttled_client_is_told_with_its_quota() -> None:
    client, heard = BrokerClient(make_broker()), Heard()
    client.broker.topics.create("orders", 1, {})
    client.broker.incidents = cast(Incidents, heard)
    client.broker.quotas.apply(ClientQuotaEntity(client_id=client.client_id), {"producer_byte_rate": 1_000})

    client.send(produce(1), 9)
    assert heard.told == []

    answer = client.send(produce(50_000), 9)

    ((key, metric, labels, time_ms),) = heard.told
    assert (key.client_id, metric, time_ms) == (client.client_id, THROTTLED, answer.throttle_time_ms)
    assert labels == {
        "api": "Produce",
        "quota": "producer_byte_rate",
        "entity": f"client-id {client.client_id}",
        "limit": "1000",
    }


@pytest.mark.parametrize(
    ("entity", "named"),
    [
        (ClientQuotaEntity(user="alice"), "user alice"),
        (ClientQuotaEntity(user=None), "user alice"),
        (ClientQuotaEntity(user="alice", client_id="app"), "user alice, client-id app"),
        (ClientQuotaEntity(client_id=None), "client-id app"),
    ],
)
def test_the_entity_is_the_one_that_shares_the_budget(entity: ClientQuotaEntity, named: str) -> None:
    quotas = make_broker().quotas
    quotas.apply(entity, {"consumer_byte_rate": 2.5e6})

    assert throttle_labels(quotas.fetch, ("alice", "app")) == {
        "quota": "consumer_byte_rate",
        "entity": named,
        "limit": "2500000",
    }
