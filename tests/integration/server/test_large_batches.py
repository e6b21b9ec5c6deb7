"""Large and poisonous batches over real sockets, validated by a real worker process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from odradek.wire.compression import Codec, compress
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from odradek.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.wire.messages.produce import ProduceRequest
from odradek.wire.record import Record
from odradek.wire.record_batch import build_batch
from support.batches import NOW_MS, altered, batch_of
from support.data_requests import produce_request
from support.hosts import ThreadedHost, running_host
from support.wire_client import WireClient

COUNT = 20_000
LARGE = build_batch([Record(b"k", b"v", NOW_MS)] * COUNT, codec=Codec.GZIP)
RECORD = b"\x0c\x00\x00\x00\x01\x01\x00"


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedHost]:
    with running_host(tmp_path_factory.mktemp("data"), "payload.workers=1") as host:
        yield host


@pytest.fixture
def client(host: ThreadedHost) -> Iterator[WireClient]:
    with WireClient(host.address) as client:
        yield client


def produce(topic: str, batch: bytes, acks: int = -1) -> ProduceRequest:
    return produce_request(topic, batch, acks=acks)


def made(client: WireClient, topic: str) -> str:
    client.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]))
    return topic


def outcome(client: WireClient, topic: str, batch: bytes) -> Any:
    return client.send(produce(topic, batch), 9).responses[0].partition_responses[0]


def end_of(client: WireClient, topic: str) -> int:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    offset: int = client.send(request, 7).topics[0].partitions[0].offset
    return offset


def test_pipelined_requests_stay_in_order_while_a_worker_validates_one(client: WireClient) -> None:
    topic = made(client, "ordered")
    small = batch_of(b"a")
    client.send_bytes(
        client.frame(produce(topic, small, acks=0), 9)
        + client.frame(produce(topic, LARGE, acks=0), 9)
        + client.frame(produce(topic, small, acks=0), 9)
    )

    last = outcome(client, topic, small)

    assert (last.error_code, last.base_offset) == (0, COUNT + 2)
    assert end_of(client, topic) == COUNT + 3


def test_a_large_poisonous_batch_is_refused_and_moves_no_offset(client: WireClient) -> None:
    topic = made(client, "poisoned")
    poison = altered(LARGE, body=compress(Codec.GZIP, RECORD * (COUNT - 1) + b"\xff" * 40))

    refused, accepted = outcome(client, topic, poison), outcome(client, topic, LARGE)

    assert (refused.error_code, refused.base_offset) == (ErrorCode.INVALID_RECORD, -1)
    assert (accepted.error_code, accepted.base_offset) == (0, 0)
    assert end_of(client, topic) == COUNT


def test_two_million_records_in_a_kilobyte_are_refused(client: WireClient) -> None:
    topic = made(client, "bombed")
    count = 2_000_000
    bomb = altered(
        batch_of(b"a", codec=Codec.ZSTD),
        body=compress(Codec.ZSTD, RECORD * count),
        record_count=count,
        last_offset_delta=count - 1,
    )

    refused = outcome(client, topic, bomb)

    assert len(bomb) < 1_500
    assert (refused.error_code, refused.base_offset) == (ErrorCode.MESSAGE_TOO_LARGE, -1)
    assert end_of(client, topic) == 0
