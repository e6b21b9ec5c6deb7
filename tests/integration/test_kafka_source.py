"""Telemetry that comes back from a cluster: two hosts export to a third, a fourth reads it from there."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer, TopicPartition
from contrib.capture.ports import free_port

import odradek_kafka
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import Origin, TelemetryRecord
from odradek.telemetry.push_accounts import PushAccounts
from odradek.topic import encode_headers, record_key
from odradek.wire.error_code import ErrorCode
from support.accounts import assert_accounts_balance
from support.hosts import EVERYTHING, ThreadedHost, running_host, serving
from support.kafka_export import TOPIC, consumer_of, deliver, read, record_of
from support.otlp_source import source_of
from support.spooling import FAST, FarSide, Plugin, name_of, names, push_all
from support.waiting import wait_until

PATIENCE_S = 30.0
SOURCE = "plugins.kafka.source"
QUICK = (f"{SOURCE}.client.reconnect.backoff.max.ms=200", f"{SOURCE}.client.statistics.interval.ms=100")


def plugins_of(**far_sides: FarSide) -> HostPluginManager:
    plugins = HostPluginManager()
    plugins.add("kafka", odradek_kafka, "odradek-kafka", "1")
    plugins.add("fake", Plugin(dict(far_sides)), "fake", "1")
    return plugins


def cluster_of(tmp_path: Path, *overrides: str) -> contextlib.AbstractContextManager[ThreadedHost]:
    """The user's cluster: a host without plugins, in which groups need not wait for members."""
    return running_host(tmp_path / "cluster", "group.initial.rebalance.delay.ms=0", *overrides)


@contextlib.contextmanager
def edge(data_dir: Path, cluster: ThreadedHost, *overrides: str) -> Iterator[ThreadedHost]:
    """A host that exports its pushes to the cluster."""
    exporting = (
        f"plugins.kafka.bootstrap.servers={cluster.bootstrap}",
        "plugins.kafka.batch.max.age.ms=20",
        "plugins.kafka.topic.partitions=2",
    )
    with running_host(data_dir, *EVERYTHING, *exporting, *overrides, plugins=plugins_of()) as host:
        yield host


@contextlib.contextmanager
def center(data_dir: Path, bootstrap: str, far_side: FarSide, *overrides: str) -> Iterator[ThreadedHost]:
    """A host that reads the cluster's topic; its accounts are balanced at the end."""
    reading = (f"{SOURCE}.bootstrap.servers={bootstrap}", *QUICK)
    with running_host(data_dir, *FAST, *reading, *overrides, plugins=plugins_of(all=far_side)) as host:
        yield host
        host.call(lambda: assert_accounts_balance(host.host))
        wait_until(lambda: host.call(lambda: accounts_of(host).balanced), lambda: accounts_of(host))


def accounts_of(host: ThreadedHost) -> PushAccounts:
    return source_of(host).entrance.accounts


def lag_of(host: ThreadedHost) -> int | None:
    return source_of(host).lag()


def until(condition: Callable[[], bool], host: ThreadedHost) -> None:
    wait_until(condition, lambda: (accounts_of(host), lag_of(host)), PATIENCE_S)


def test_the_pushes_of_two_hosts_arrive_on_a_third_as_they_were(tmp_path: Path) -> None:
    far_side = FarSide()
    with (
        cluster_of(tmp_path) as cluster,
        edge(tmp_path / "a", cluster, "node.id=1") as one,
        edge(tmp_path / "b", cluster, "node.id=2") as two,
    ):
        push_all(one, range(20))
        push_all(two, range(20, 40))
        with center(tmp_path / "center", cluster.bootstrap, far_side) as host:
            until(lambda: len(far_side.taken) >= 40, host)
            until(lambda: lag_of(host) == 0, host)

            assert accounts_of(host).appended == 40
        topic_ids = {each.host.spool.topic_id for each in (one, two) if each.host.spool}

    assert sorted(far_side.names) == sorted(names(range(40)))
    assert {record.origin.topic_id for record in far_side.taken if record.origin} == topic_ids
    assert {record.context.connection.node_id for record in far_side.taken} == {1, 2}
    assert {record.context.connection.client_software_name for record in far_side.taken} == {"raw-client"}
    assert {record.source for record in far_side.taken} == {None}


def test_records_that_were_exported_twice_are_stored_once(tmp_path: Path) -> None:
    far_side = FarSide()
    batch = [record_of(number) for number in range(30)]
    for record in batch:
        record.origin = Origin("x4Vb1KtGQ5a9IYmNqeLhWg", 0, record.context.received_ms)
    with cluster_of(tmp_path) as cluster:
        deliver(cluster.bootstrap, batch, batch[10:], batch)
        with center(tmp_path / "center", cluster.bootstrap, far_side) as host:
            until(lambda: accounts_of(host).received == 80, host)
            until(lambda: len(far_side.taken) >= 30, host)

            found = accounts_of(host)

    assert (found.appended, found.repeated) == (30, 50)
    assert [record.payload.data for record in far_side.taken] == [record.payload.data for record in batch]


def test_a_restart_repeats_and_misses_nothing(tmp_path: Path) -> None:
    batches = [[record_of(number) for number in range(at, at + 50)] for at in range(0, 200, 50)]
    far_side = FarSide()
    with cluster_of(tmp_path) as cluster:
        for batch in batches:
            deliver(cluster.bootstrap, batch)
            with center(tmp_path / "center", cluster.bootstrap, far_side) as host:
                until(lambda: accounts_of(host).received > 0, host)
        with center(tmp_path / "center", cluster.bootstrap, far_side) as host:
            until(lambda: len(far_side.taken) >= 200, host)

    assert Counter(data_of(far_side.taken)) == Counter(data_of(itertools.chain(*batches)))


def data_of(records: object) -> list[bytes]:
    return [record.payload.data for record in records]  # type: ignore[attr-defined]


def test_offsets_that_were_not_committed_are_recognized_by_their_origin(tmp_path: Path) -> None:
    """A killed host stores records without committing them: the group begins before them again."""
    far_side = FarSide()
    batch = [record_of(number) for number in range(40)]
    with cluster_of(tmp_path) as cluster:
        deliver(cluster.bootstrap, batch)
        with center(tmp_path / "center", cluster.bootstrap, far_side, f"{SOURCE}.group.id=first") as host:
            until(lambda: len(far_side.taken) == 40, host)
        with center(tmp_path / "center", cluster.bootstrap, far_side, f"{SOURCE}.group.id=second") as host:
            until(lambda: accounts_of(host).repeated == 40, host)

    assert data_of(far_side.taken) == data_of(batch)


def test_a_full_log_delays_records_and_loses_none(tmp_path: Path) -> None:
    far_side = FarSide()
    batch = [record_of(number) for number in range(100)]
    with cluster_of(tmp_path) as cluster:
        deliver(cluster.bootstrap, batch)
        with center(
            tmp_path / "center", cluster.bootstrap, far_side, "telemetry.buffer.max.bytes=10000"
        ) as host:
            until(lambda: len(far_side.taken) >= 100, host)

            refused = accounts_of(host).rejected[ErrorCode.THROTTLING_QUOTA_EXCEEDED]

    assert refused > 0
    assert Counter(data_of(far_side.taken)) == Counter(data_of(batch))


def test_the_cluster_may_start_later_and_go_away(tmp_path: Path) -> None:
    far_side = FarSide()
    address = f"127.0.0.1:{free_port()}"
    with cluster_of(tmp_path, f"listeners=PLAINTEXT://{address}"):
        deliver(address, [record_of(0)])
    with center(tmp_path / "center", address, far_side) as host:
        for number in (1, 2):
            with cluster_of(tmp_path, f"listeners=PLAINTEXT://{address}") as cluster:
                deliver(cluster.bootstrap, [record_of(number)])
                until(lambda number=number: len(far_side.taken) > number, host)  # type: ignore[misc]

    assert sorted(data_of(far_side.taken)) == sorted(data_of(record_of(number) for number in range(3)))


def test_junk_is_counted_and_passed_over(tmp_path: Path) -> None:
    far_side = FarSide()
    with cluster_of(tmp_path) as cluster:
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.metrics.push": False})
        good = record_of(1)
        bad = record_of(2, data=b"\xff\xfe no protobuf")
        for _ in range(3):
            producer.produce(TOPIC, b"junk", b"key")
        for record in (bad, good):
            key = record_key(record.payload.client_instance_id)
            producer.produce(TOPIC, record.payload.data, key, headers=encode_headers(record))
        assert producer.flush(PATIENCE_S) == 0
        with center(tmp_path / "center", cluster.bootstrap, far_side) as host:
            until(lambda: len(far_side.taken) == 1, host)
            until(lambda: lag_of(host) == 0, host)
            found = accounts_of(host)

    assert found.rejected == {ErrorCode.INVALID_RECORD: 4}
    assert data_of(far_side.taken) == [good.payload.data]


def test_a_host_that_reads_its_own_log_stores_nothing_twice(tmp_path: Path) -> None:
    far_side = FarSide()
    taken: list[TelemetryRecord] = []
    address = f"127.0.0.1:{free_port()}"
    own = (f"listeners=PLAINTEXT://{address}", f"{SOURCE}.topics=__client_telemetry")
    with center(tmp_path / "center", address, far_side, *own, "group.initial.rebalance.delay.ms=0") as host:
        push_all(host, range(10))
        until(lambda: accounts_of(host).repeated == 10 and len(far_side.taken) >= 10, host)
        taken += far_side.taken

    assert sorted(name_of(record.payload.data) for record in taken) == sorted(names(range(10)))


def test_two_hosts_of_a_group_share_the_partitions(tmp_path: Path) -> None:
    far_sides = (FarSide(), FarSide())
    batch = [record_of(number, instance=number % 20 + 1) for number in range(400)]
    with cluster_of(tmp_path) as cluster:
        deliver(cluster.bootstrap, batch[:100], **{"topic.partitions": 4})
        with (
            center(tmp_path / "one", cluster.bootstrap, far_sides[0]) as one,
            center(tmp_path / "two", cluster.bootstrap, far_sides[1]) as two,
        ):
            until(lambda: len(far_sides[0].taken) + len(far_sides[1].taken) >= 100, one)
            wait_until(lambda: shared(cluster), "the partitions are not shared")
            deliver(cluster.bootstrap, batch[100:], **{"topic.partitions": 4})
            until(lambda: len({data for each in far_sides for data in data_of(each.taken)}) == 400, two)

    assert min(len(each.taken) for each in far_sides) > 0
    # A rebalance may refuse a commit; what comes again has the same origin.
    origins = {(record.payload.data, record.origin) for each in far_sides for record in each.taken}
    assert Counter(data for data, _ in origins) == Counter(data_of(batch))


def shared(cluster: ThreadedHost) -> bool:
    """Whether the group has two members with partitions."""
    from confluent_kafka import ConsumerGroupState
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "enable.metrics.push": False})
    group = admin.describe_consumer_groups(["odradek.source"])["odradek.source"].result(PATIENCE_S)
    sizes = [len(member.assignment.topic_partitions) for member in group.members]
    return group.state == ConsumerGroupState.STABLE and sizes == [2, 2]


@pytest.mark.slow
def test_a_killed_host_repeats_and_misses_nothing(tmp_path: Path) -> None:
    """It stored records without committing them; the next start reads its own log and knows them."""
    batch = [record_of(number, instance=number % 7 + 1) for number in range(600)]
    with cluster_of(tmp_path) as cluster:
        reading = (
            f"{SOURCE}.bootstrap.servers={cluster.bootstrap}",
            f"{SOURCE}.batch.max.records=5",
            f"{SOURCE}.client.group.instance.id=center",  # else the cluster waits for the killed member
        )
        arguments = [word for each in reading for word in ("--set", each)]
        deliver(cluster.bootstrap, batch, **{"topic.partitions": 3})
        for at in (50, 200):
            with serving(tmp_path / "center", *arguments) as serve:
                wait_until(lambda at=at, serve=serve: stored_by(serve.bootstrap) >= at, "nothing is stored")  # type: ignore[misc]
                serve.kill()
        with serving(tmp_path / "center", *arguments) as serve:
            messages = read(serve.bootstrap, "__client_telemetry", len(batch))
            found = stored_by(serve.bootstrap)

    assert found == len(batch)
    assert Counter(message.value() for message in messages) == Counter(data_of(batch))


def stored_by(bootstrap: str) -> int:
    """The number of records in the log of a host."""
    with consumer_of(bootstrap) as consumer:
        partitions = (
            consumer.list_topics("__client_telemetry", PATIENCE_S).topics["__client_telemetry"].partitions
        )
        places = [TopicPartition("__client_telemetry", number) for number in partitions]
        return sum(consumer.get_watermark_offsets(place, timeout=PATIENCE_S)[1] for place in places)


@pytest.mark.java
@pytest.mark.timeout(180)
def test_records_come_back_from_apache_kafka(tmp_path: Path) -> None:
    from contrib.capture.kafka_node import NEWEST, kafka_node

    from integration.java.jvm import built_classpath

    built_classpath("--kafka", NEWEST)  # skips the test where it cannot be built
    far_side = FarSide()
    with kafka_node() as node:
        address = f"127.0.0.1:{node.port}"
        exporting = (f"plugins.kafka.bootstrap.servers={address}", "plugins.kafka.batch.max.age.ms=20")
        with running_host(tmp_path / "edge", *EVERYTHING, *exporting, plugins=plugins_of()) as edge_host:
            push_all(edge_host, range(50))
            for numbers in (range(50), range(50, 100)):
                with center(tmp_path / "center", address, far_side) as host:
                    until(lambda end=numbers.stop: len(far_side.taken) >= end, host)  # type: ignore[misc]
                    until(lambda: lag_of(host) == 0, host)
                    if numbers.start == 0:
                        push_all(edge_host, range(50, 100))
            assert edge_host.host.spool is not None
            topic_id = edge_host.host.spool.topic_id
        deliver(address, [record_of(0)])
        with center(tmp_path / "center", address, far_side) as host:
            until(lambda: len(far_side.taken) == 101, host)

    assert Counter(far_side.names[:100]) == Counter(names(range(100)))
    origins = [record.origin for record in far_side.taken]
    assert {each.topic_id for each in origins[:100] if each} == {topic_id}
    assert origins[100] is not None
    assert origins[100].topic_id != topic_id
