"""The lag of a group while one of three nodes of Apache Kafka dies: the others are measured on, nothing is
negative, and what the dead one led comes back with its new leaders.
"""

from __future__ import annotations

import pytest

from integration.java.kafka_cluster import NODES, KafkaCluster
from odradek.client.admin import AdminClient
from odradek.client.group_offsets import CommittedOffset
from odradek.client.resources import NewTopic
from odradek.waiting.clock import SystemClock
from support.polled_lag import PolledLag
from support.waiting import wait_until

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
TOPIC, GROUP = "polled-lag", "polled-lag-reader"
WRITTEN, COMMITTED = 5, 2
ORDER = (NODES[-1], *NODES[:-1])
"""The replicas of partition 0, whose leader dies; those of the other two partitions are turned by one."""


def lags(polled: PolledLag) -> dict[int, int]:
    """The lag of each partition that is known now, none of them negative."""
    polled.round()
    found = polled.of(GROUP)
    read = found.topics[TOPIC].partitions if found is not None else ()
    assert all(each.standing.lag >= 0 for each in read)
    return {each.partition: each.standing.lag for each in read}


def test_a_node_dies(kafka_nodes: KafkaCluster) -> None:
    dead = ORDER[0]
    replicas = [ORDER[place:] + ORDER[:place] for place in range(len(ORDER))]
    with AdminClient(kafka_nodes.bootstrap, timeout_s=60) as admin:
        admin.create_topics([NewTopic(name=TOPIC, assignments=replicas)])
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka_nodes.bootstrap})
        for partition in range(len(ORDER)):
            for _ in range(WRITTEN):
                producer.produce(TOPIC, b"v", partition=partition)
        assert producer.flush(60) == 0
        committed = {(TOPIC, partition): CommittedOffset(COMMITTED) for partition in range(len(ORDER))}
        admin.offset_commit(GROUP, committed)
        every = dict.fromkeys(range(len(ORDER)), WRITTEN - COMMITTED)
        polled = PolledLag(kafka_nodes.bootstrap, SystemClock())
        wait_until(lambda: lags(polled) == every, "all leaders")
        topic_id = polled.positions.topics[TOPIC].id
        assert polled.positions.topics[TOPIC].leaders[0] == dead

        kafka_nodes.kill(dead)
        try:
            for partition in range(len(ORDER)):
                producer.produce(TOPIC, b"v", partition=partition)
            during = [lags(polled)]
            assert during[0].keys() == every.keys()  # kept for a minute
            assert polled.positions.outcome == "failed"
            grown = {partition: lag + 1 for partition, lag in every.items()}

            def settled() -> bool:
                polled.note_ends()
                during.append(lags(polled))
                return during[-1] == grown

            wait_until(settled, lambda: f"{during} {polled.problems}", 90)
            assert producer.flush(60) == 0
            assert polled.positions.topics[TOPIC].leaders[0] != dead
            assert polled.positions.topics[TOPIC].id == topic_id
        finally:
            kafka_nodes.start(dead)
            kafka_nodes.wait(dead)
        polled.positions.brokers.close()
