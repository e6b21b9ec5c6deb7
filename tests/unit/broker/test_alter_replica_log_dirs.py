from __future__ import annotations

from pathlib import Path

import pytest

from odradek.waiting.steps import run_steps
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from support.batches import batch_of, values_from
from support.broker import BrokerClient, make_broker


@pytest.fixture
def client(tmp_path: Path) -> BrokerClient:
    """Two directories; ``a-0`` is in ``one``, ``a-1`` in ``two``."""
    client = BrokerClient(make_broker(tmp_path / "one", more_log_dirs=[tmp_path / "two"]))
    client.broker.topics.create("a", 2, {})
    client.broker.topics.log("a", 0).append(batch_of(b"x"), client.broker.clock.now_ms())
    return client


def alter(
    client: BrokerClient, path: Path, *wanted: tuple[str, int], version: int | None = None
) -> list[tuple[str, int, int]]:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=[index]) for name, index in wanted]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=topics)])
    return [
        (result.topic_name, each.partition_index, each.error_code)
        for result in client.send(request, version).results
        for each in result.partitions
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_partition_moves_to_another_directory(client: BrokerClient, tmp_path: Path, version: int) -> None:
    log = client.broker.topics.log("a", 0)

    answer = alter(client, tmp_path / "two", ("a", 0), version=version)
    for move in client.broker.logs.moves.values():
        run_steps(move.steps())

    assert answer == [("a", 0, ErrorCode.NONE)]
    assert log.directory == tmp_path / "two" / "a-0"
    assert values_from(log) == [(0, b"x")]


def test_a_partition_already_in_the_directory_does_not_move(client: BrokerClient, tmp_path: Path) -> None:
    where_it_is = tmp_path / "one"

    answer = alter(client, where_it_is, ("a", 0))

    assert answer == [("a", 0, ErrorCode.NONE)]
    assert not client.broker.logs.moves


def test_an_unknown_directory_is_not_found(client: BrokerClient, tmp_path: Path) -> None:
    path = tmp_path / "three"

    answer = alter(client, path, ("a", 0), ("nowhere", 0))

    assert answer == [("a", 0, ErrorCode.LOG_DIR_NOT_FOUND), ("nowhere", 0, ErrorCode.LOG_DIR_NOT_FOUND)]


def test_a_missing_directory_is_a_storage_error(client: BrokerClient, tmp_path: Path) -> None:
    (tmp_path / "two").rename(tmp_path / "lost")

    answer = alter(client, tmp_path / "two", ("a", 0))

    assert answer == [("a", 0, ErrorCode.KAFKA_STORAGE_ERROR)]


def test_a_partition_that_does_not_exist_is_created_there(client: BrokerClient, tmp_path: Path) -> None:
    answer = alter(client, tmp_path / "two", ("b", 0))

    topic = client.broker.topics.create("b", 2, {})

    assert answer == [("b", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)]
    assert [log.directory.parent.name for log in topic.partitions] == ["two", "one"]


def test_choosing_another_directory_cancels_a_move(client: BrokerClient, tmp_path: Path) -> None:
    alter(client, tmp_path / "two", ("a", 0))

    alter(client, tmp_path / "one", ("a", 0))

    assert not client.broker.logs.moves
