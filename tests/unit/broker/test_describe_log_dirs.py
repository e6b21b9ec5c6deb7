from __future__ import annotations

import os
from itertools import islice
from pathlib import Path

import pytest

from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from support.batches import batch_of
from support.broker import BrokerClient, make_broker

Row = tuple[str, str, int, int, int, bool]


@pytest.fixture
def client(tmp_path: Path) -> BrokerClient:
    """Two directories; ``a`` with a partition of one record in each."""
    client = BrokerClient(make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"]))
    client.broker.topics.create("a", 2, {})
    for index in range(2):
        client.broker.topics.log("a", index).append(batch_of(b"x"), client.broker.clock.now_ms())
    return client


def describe(
    client: BrokerClient, wanted: dict[str, list[int]] | None = None, version: int | None = None
) -> DescribeLogDirsResponse:
    topics = None
    if wanted is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=each) for name, each in wanted.items()]
    response = client.send(DescribeLogDirsRequest(topics=topics), version)
    assert isinstance(response, DescribeLogDirsResponse)
    return response


def rows(response: DescribeLogDirsResponse) -> list[Row]:
    return [
        (
            Path(result.log_dir).name,
            topic.name,
            each.partition_index,
            each.partition_size,
            each.offset_lag,
            each.is_future_key,
        )
        for result in response.results
        for topic in result.topics
        for each in topic.partitions
    ]


@pytest.mark.parametrize("version", [1, 2, 3, 4, 5])
def test_every_directory_lists_its_partitions(client: BrokerClient, version: int) -> None:
    size_bytes = len(batch_of(b"x"))

    response = describe(client, version=version)

    assert rows(response) == [("one", "a", 0, size_bytes, 0, False), ("two", "a", 1, size_bytes, 0, False)]
    assert all(Path(result.log_dir).is_absolute() for result in response.results)


def test_only_requested_partitions_are_described(client: BrokerClient) -> None:
    wanted = {"a": [1, 7], "nowhere": [0]}

    response = describe(client, wanted)

    assert [row[:3] for row in rows(response)] == [("two", "a", 1)]
    assert len(response.results) == 2


def test_the_space_of_the_file_system_is_returned(client: BrokerClient, tmp_path: Path) -> None:
    space = os.statvfs(tmp_path)

    result = describe(client).results[0]

    assert result.total_bytes == space.f_blocks * space.f_frsize
    assert 0 < result.usable_bytes < result.total_bytes
    assert not result.is_cordoned


def test_a_copy_in_progress_is_a_future_replica(client: BrokerClient, tmp_path: Path) -> None:
    log = client.broker.topics.log("a", 0)
    for _ in range(9):
        log.append(batch_of(b"x" * 30_000), client.broker.clock.now_ms())
    move = client.broker.logs.move("a", 0, tmp_path / "two", client.broker.clock)
    assert move is not None
    for _ in islice(move.steps(), 3):
        pass

    response = describe(client, {"a": [0]})

    here, there = rows(response)
    assert here == ("one", "a", 0, log.size_bytes, 0, False)
    assert there == ("two", "a", 0, move.size_bytes, move.offset_lag, True)
    assert 0 < move.offset_lag < 10


def test_a_missing_directory_is_a_storage_error(client: BrokerClient, tmp_path: Path) -> None:
    (tmp_path / "two").rename(tmp_path / "lost")

    codes = [result.error_code for result in describe(client).results]

    assert codes == [ErrorCode.NONE, ErrorCode.KAFKA_STORAGE_ERROR]
