"""Records, offsets and users that a test puts into its host without a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from odradek.client.partitioner import partition_of
from odradek.testing import NothingCame, RunningHost, VirtualClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from support.data_requests import fetch_request
from support.wire_client import WireClient


def test_produced_records_are_stored_with_all_they_have(odradek_hosts: Callable[..., RunningHost]) -> None:
    host = odradek_hosts(clock=VirtualClock())
    host.topics.create("t", 2)

    first = host.topics.produce("t", b"one", "two", key="k", headers={"h": "v", "n": None}, partition=1)
    last = host.topics.produce("t", None, key=b"k", partition=1, timestamp_ms=1_000)

    assert host.topics.records("t", 1) == first + last
    assert [record.offset for record in first + last] == [0, 1, 2]
    assert first[1][2:] == (b"k", b"two", host.clock.now_ms(), (("h", b"v"), ("n", None)))
    assert last[0][2:5] == (b"k", None, 1_000)


def test_a_topic_is_created_and_the_partition_is_that_of_the_key(
    odradek_hosts: Callable[..., RunningHost],
) -> None:
    host = odradek_hosts(num_partitions=5)

    chosen = {key: host.topics.produce("new", b"x", key=key)[0].partition for key in ("a", "b", "c")}

    assert chosen == {key: partition_of(key.encode(), 5) for key in ("a", "b", "c")}
    assert len(set(chosen.values())) > 1
    assert host.topics.produce("new", b"no key")[0].partition == 0


def test_a_waiting_consumer_gets_what_the_test_produces(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t")
    request = fetch_request("t", max_wait_ms=60_000)
    with WireClient(odradek_host.address) as client:
        client.send_bytes(client.frame(request, 11))
        odradek_host.arrivals.wait_for(lambda: odradek_host.requests.of("Fetch") or None, 5, "fetch")

        odradek_host.topics.produce("t", b"one")

        assert client.answer(request, 11).responses[0].partitions[0].high_watermark == 1


def test_committed_records_are_those_that_a_consumer_of_transactions_reads(odradek_host: RunningHost) -> None:
    kafka = pytest.importorskip("confluent_kafka")
    odradek_host.topics.create("t")
    producers = []
    for name, ends in (("a", "commit_transaction"), ("b", "abort_transaction"), ("c", None)):
        producer = kafka.Producer({"bootstrap.servers": odradek_host.bootstrap, "transactional.id": name})
        producers.append(producer)
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("t", name)
        producer.flush(10)
        if ends is not None:
            getattr(producer, ends)(10)
    odradek_host.topics.produce("t", "after")

    def values(**arguments: object) -> list[bytes | None]:
        return [record.value for record in odradek_host.topics.records("t", **arguments)]  # type: ignore[arg-type]

    assert values() == [b"a", b"b", b"c", b"after"]
    assert values(isolation="read_committed") == [b"a"]
    producers[2].abort_transaction(10)
    assert values(isolation="read_committed") == [b"a", b"after"]
    with pytest.raises(ValueError, match="expected 'read_uncommitted' or 'read_committed'"):
        values(isolation="committed")


def test_faults_do_not_hit_what_the_test_produces(odradek_host: RunningHost) -> None:
    fault = odradek_host.fault("Produce", drop="before", optional=True)

    odradek_host.topics.produce("t", b"one")

    assert (fault.used, len(odradek_host.requests)) == (0, 0)


def test_records_wait_for_the_disk_if_the_topic_says_so(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t", flush_messages=1)

    assert odradek_host.topics.produce("t", b"one")[0].offset == 0


@pytest.mark.parametrize(
    ("key", "partition", "code"),
    [("k", 7, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (None, 0, ErrorCode.INVALID_RECORD)],
)
def test_refused_records_raise(
    odradek_host: RunningHost, key: str | None, partition: int, code: ErrorCode
) -> None:
    odradek_host.topics.create("t", cleanup_policy="compact")

    with pytest.raises(ApiError, match=f"topic t, partition {partition}") as refused:
        odradek_host.topics.produce("t", b"x", key=key, partition=partition)

    assert refused.value.code == code


def test_a_deleted_topic_is_gone(odradek_host: RunningHost) -> None:
    odradek_host.topics.produce("t", b"one")

    odradek_host.topics.delete("t")

    assert odradek_host.topics.names() == []
    with pytest.raises(ApiError, match="no topic t"):
        odradek_host.topics.delete("t")


def commit(client: WireClient, offset: int) -> None:
    """Commit an offset of partition 1 of the topic ``t`` for the group ``g``."""
    partition = OffsetCommitRequestPartition(partition_index=1, committed_offset=offset)
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    response = client.send(OffsetCommitRequest(group_id="g", topics=topics), 8)
    assert response.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_committed_offsets_are_read(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t", 2)
    odradek_host.topics.create("other")
    assert odradek_host.groups.committed("g", "t") == {}

    with WireClient(odradek_host.address) as client:
        commit(client, 3)

    assert odradek_host.groups.committed("g", "t") == {1: 3}
    assert odradek_host.groups.committed("g", "other") == {}
    assert odradek_host.groups.names() == ["g"]
    with pytest.raises(ApiError, match="no topic absent"):
        odradek_host.groups.committed("g", "absent")


def test_a_consumer_starts_at_the_offset_that_the_test_commits(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t", 2)

    odradek_host.groups.commit("g", "t", {0: 5})

    topics = [OffsetFetchRequestTopic(name="t", partition_indexes=[0, 1])]
    with WireClient(odradek_host.address) as client:
        response = client.send(OffsetFetchRequest(group_id="g", topics=topics), 7)
    assert [part.committed_offset for part in response.topics[0].partitions] == [5, -1]
    with pytest.raises(ApiError, match="no partition 2 of topic t"):
        odradek_host.groups.commit("g", "t", {2: 0})


def test_a_test_waits_for_a_commit(odradek_host: RunningHost) -> None:
    odradek_host.topics.create("t", 2)

    async def use() -> dict[int, int]:
        with WireClient(odradek_host.address) as client:
            asyncio.get_running_loop().call_later(0.01, commit, client, 3)
            return await odradek_host.groups.wait_for_commit("g", "t", {1: 3})

    assert asyncio.run(use()) == {1: 3}
    assert odradek_host.groups.wait_for_commit("g", "t", {1: 2}) == {1: 3}
    with pytest.raises(NothingCame, match=r"no commit of \{1: 4\} by group g for topic t within 0 s"):
        odradek_host.groups.wait_for_commit("g", "t", {1: 4}, timeout_s=0)


def test_users_authenticate_with_their_newest_password(odradek_hosts: Callable[..., RunningHost]) -> None:
    confluent = pytest.importorskip("confluent_kafka.admin")
    host = odradek_hosts(listeners="SASL_PLAINTEXT://127.0.0.1:0")
    host.topics.create("t")
    host.user("alice", "old")
    host.user("alice", "secret")

    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        admin = confluent.AdminClient(
            {
                "bootstrap.servers": host.bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.username": "alice",
                "sasl.password": "secret",
            }
        )
        assert list(admin.list_topics(timeout=10).topics) == ["t"]
    assert host.requests.of("Metadata")[-1].context.connection.principal == "User:alice"
    with pytest.raises(ApiError) as refused:
        host.user("", "secret")
    assert refused.value.code == ErrorCode.UNACCEPTABLE_CREDENTIAL
