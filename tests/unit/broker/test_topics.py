from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.broker.broker import Broker
from odradek.broker.topic_changes import ChangeableTopics, NewTopics
from odradek.broker.topics import (
    MAX_NAME_LENGTH,
    MAX_PARTITIONS,
    check_leader_epoch,
    check_name,
    check_partitions,
)
from odradek.log.log_manager import LogManager
from odradek.metadata.store import MetadataStore, StoreError, TopicRow
from odradek.testing.clock import MockClock
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.types import NIL_UUID
from support.batches import NOW_MS, batch_of, values_from
from support.broker import make_broker


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    broker = make_broker(tmp_path / "logs")
    yield broker
    broker.logs.close()


def refusal(call: Callable[[], object]) -> ErrorCode:
    """The error code that a call fails with."""
    with pytest.raises(ApiError) as caught:
        call()
    return caught.value.code


def test_a_topic_is_found_by_name_by_id_and_by_partition(broker: Broker) -> None:
    topic = broker.topics.create("t", 2, {"retention.ms": "1000"})

    found = broker.topics.named("t")

    assert found is topic
    assert broker.topics.by_id[topic.id] is topic
    assert broker.topics.log("t", 1) is topic.partitions[1]
    assert list(broker.topics) == [topic]
    assert topic.config.retention_ms == 1000
    assert not topic.is_internal


@pytest.mark.parametrize("index", [-1, 2, 2**31 - 1, -(2**31)])
def test_an_unknown_partition_is_refused(broker: Broker, index: int) -> None:
    topic = broker.topics.create("t", 2, {})

    found = refusal(lambda: broker.topics.log("t", index))

    assert topic.partition(index) is None
    assert found is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_an_unknown_topic_is_refused(broker: Broker) -> None:
    assert broker.topics.named("t") is None
    assert refusal(lambda: broker.topics.log("t", 0)) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def reopened(broker: Broker, directory: Path) -> ChangeableTopics:
    """The topics after a restart."""
    broker.logs.close()
    clock = MockClock()
    logs = LogManager(directory, now_ms=clock.now_ms())
    return ChangeableTopics(broker.metadata, logs, clock, lambda: b"never....asked..")


def test_topics_and_their_records_survive_a_restart(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topics.create("t", 2, {"retention.ms": "1000"})
    topic.partitions[1].append(batch_of(b"hello"), now_ms=NOW_MS)

    topics = reopened(broker, tmp_path / "logs")

    again = topics.named("t")
    assert again is not None
    assert (again.id, again.config.retention_ms, len(again.partitions)) == (topic.id, 1000, 2)
    assert values_from(again.partitions[1]) == [(0, b"hello")]
    topics.logs.close()


def test_a_start_sets_aside_what_no_topic_explains(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("kept", "lost"):
        broker.topics.create(name, 2, {}).partitions[1].append(batch_of(b"hello"), now_ms=NOW_MS)
    broker.metadata.delete_topic("lost")

    topics = reopened(broker, tmp_path / "logs")

    names = sorted(each.name.partition(".")[0] for each in (tmp_path / "logs").iterdir())
    assert names == ["kept-0", "kept-1", "lost-1"]  # lost-0 held nothing
    [line] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert vars(line)["folder"].endswith("lost-1")
    assert topics.create("lost", 2, {}).partitions[1].log_end_offset == 0
    topics.logs.close()


@pytest.mark.parametrize("lost", ["folder", "segments"])
def test_a_partition_whose_files_are_lost_is_an_error(
    broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture, lost: str
) -> None:
    broker.topics.create("t", 2, {}).partitions[1].append(batch_of(b"hello"), now_ms=NOW_MS)
    broker.logs.close()
    folder = tmp_path / "logs" / "t-1"
    if lost == "folder":
        shutil.rmtree(folder)
    else:
        for path in folder.glob("0*"):
            path.unlink()

    topics = reopened(broker, tmp_path / "logs")

    [line] = caplog.records
    assert (line.levelname, vars(line)["folder"]) == ("ERROR", str(folder))
    assert topics.log("t", 1).log_end_offset == 0
    topics.logs.close()


@pytest.mark.parametrize(("name", "partitions"), [("/etc", 1), ("..", 1), ("", 1), ("t", 0), ("t", 10**9)])
def test_a_stored_topic_that_makes_no_sense_is_not_opened(
    broker: Broker, tmp_path: Path, name: str, partitions: int
) -> None:
    broker.metadata.put_topic(TopicRow(name, b"x" * 16, partitions))

    with pytest.raises(StoreError):
        reopened(broker, tmp_path / "logs")

    assert list((tmp_path / "logs").iterdir()) == []


def test_a_deleted_topic_leaves_nothing_behind(broker: Broker, tmp_path: Path) -> None:
    topic = broker.topics.create("t", 2, {"retention.ms": "1000"})

    broker.topics.delete(topic)

    assert broker.topics.named("t") is None
    assert broker.topics.by_id == {}
    assert broker.metadata.topics() == []
    assert broker.metadata.resource(2, "t") == {}
    assert list((tmp_path / "logs").iterdir()) == []
    assert len(broker.logs) == 0


def test_a_topic_created_again_under_its_name_is_another_topic(broker: Broker) -> None:
    first = broker.topics.create("t", 1, {})
    first.partitions[0].append(batch_of(b"old"), now_ms=NOW_MS)
    broker.topics.delete(first)

    second = broker.topics.create("t", 1, {})

    assert second.id != first.id
    assert second.partitions[0].log_end_offset == 0


def test_deleting_a_topic_tells_waiting_fetches(broker: Broker) -> None:
    topic = broker.topics.create("t", 2, {})
    heard: list[int] = []
    topic.partitions[1].listeners.add(heard.append)

    broker.topics.delete(topic)

    assert heard == [0]


class FailingDisk:
    """Make the log manager fail at one partition."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, method: str, partition: int) -> None:
        self.original = getattr(LogManager, method)
        self.partition = partition
        monkeypatch.setattr(LogManager, method, lambda logs, *args, **kw: self(logs, *args, **kw))

    def __call__(self, logs: LogManager, topic: str, partition: int, *args: object, **kw: object) -> object:
        if partition == self.partition:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "no space left on device")
        return self.original(logs, topic, partition, *args, **kw)


def test_a_topic_that_cannot_be_created_completely_is_not_created(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        FailingDisk(patch, "open", 2)

        code = refusal(lambda: broker.topics.create("t", 3, {"retention.ms": "1000"}))

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.topics.named("t") is None
    assert broker.topics.by_id == {}
    assert broker.metadata.topics() == []
    assert broker.metadata.resource(2, "t") == {}
    assert len(broker.logs) == 0


def test_a_topic_can_be_created_once_there_is_room_and_survives_a_restart(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        FailingDisk(patch, "open", 2)
        refusal(lambda: broker.topics.create("t", 3, {}))
    topic = broker.topics.create("t", 3, {})
    topic.partitions[0].append(batch_of(b"kept"), now_ms=NOW_MS)

    topics = reopened(broker, tmp_path / "logs")

    assert values_from(topics.log("t", 0)) == [(0, b"kept")]
    topics.logs.close()


def test_files_that_a_failed_creation_did_not_open_stay(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leftover = tmp_path / "logs" / "t-1" / "00000000000000000000.log"
    leftover.parent.mkdir()
    leftover.write_bytes(b"of a topic that nobody knows")
    with monkeypatch.context() as patch:
        FailingDisk(patch, "open", 1)

        code = refusal(lambda: broker.topics.create("t", 2, {}))

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert leftover.exists()


def test_a_topic_that_cannot_be_stored_is_not_created(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    with monkeypatch.context() as patch:
        patch.setattr(MetadataStore, "put_resource", fail)
        with pytest.raises(OSError, match="disk full"):
            broker.topics.create("t", 1, {})

    assert broker.topics.named("t") is None
    assert broker.metadata.topics() == []


def test_of_several_topics_one_can_fail_alone(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch, NewTopics(broker.topics) as new:
        FailingDisk(patch, "open", 2)
        result_of(new.add("first", 2, {}))
        code = refusal(lambda: result_of(new.add("second", 3, {"retention.ms": "5"})))
        result_of(new.add("third", 1, {}))
        result_of(new.store())

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert [row.name for row in broker.metadata.topics()] == ["first", "third"]
    assert broker.metadata.resource(2, "second") == {}
    assert [topic.name for topic in broker.topics] == ["first", "third"]


def test_topics_that_are_never_stored_are_not_created(broker: Broker, tmp_path: Path) -> None:
    broker.topics.create("before", 1, {})

    def half_done() -> None:
        with NewTopics(broker.topics) as new:
            result_of(new.add("t", 2, {}))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()

    assert [topic.name for topic in broker.topics] == ["before"]
    assert [row.name for row in broker.metadata.topics()] == ["before"]
    assert len(broker.topics.by_id) == len(broker.logs) == 1
    broker.topics.create("t", 1, {})


def test_topics_that_cannot_be_stored_are_not_created(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, "disk full")

    with monkeypatch.context() as patch, NewTopics(broker.topics) as new:
        patch.setattr(MetadataStore, "put_topic", fail)
        result_of(new.add("t", 2, {}))
        result_of(new.store())

    assert new.failed["t"].code is ErrorCode.KAFKA_STORAGE_ERROR
    assert list(broker.topics) == []
    assert broker.metadata.topics() == []
    assert len(broker.logs) == 0
    broker.topics.create("t", 1, {})


def test_a_log_that_cannot_be_deleted_does_not_affect_the_others(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = broker.topics.create("t", 3, {})
    with monkeypatch.context() as patch:
        FailingDisk(patch, "delete", 0)

        code = refusal(lambda: broker.topics.delete(topic))

    assert code is ErrorCode.KAFKA_STORAGE_ERROR
    assert broker.topics.named("t") is None
    assert [broker.logs.log("t", index) is None for index in (1, 2)] == [True, True]


@pytest.mark.parametrize("name", ["a", "A-z_0.9", "x" * MAX_NAME_LENGTH, "...", "-"])
def test_a_legal_name_is_accepted(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a b", "ä", "a/b", "../x", "a\n", "\0", "x" * (MAX_NAME_LENGTH + 1)]
)
def test_an_illegal_name_is_refused(name: str) -> None:
    assert refusal(lambda: check_name(name)) is ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_very_long_name_is_shown_shortened() -> None:
    with pytest.raises(ApiError) as caught:
        check_name("x" * 30_000)

    assert len(caught.value.message or "") < 400


def test_the_longest_name_with_most_partitions_fits_into_the_file_system(
    broker: Broker, tmp_path: Path
) -> None:
    name = "x" * MAX_NAME_LENGTH

    topic = broker.topics.create(name, 101, {})
    broker.topics.delete(topic)

    assert list((tmp_path / "logs").iterdir()) == []


@pytest.mark.parametrize(("first", "second"), [("a.b", "a_b"), ("a_b", "a.b"), ("a.b_c", "a_b.c")])
def test_names_that_differ_in_dots_and_underscores_collide(broker: Broker, first: str, second: str) -> None:
    broker.topics.create(first, 1, {})

    code = refusal(lambda: broker.topics.create(second, 1, {}))

    assert code is ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize(
    "name", ["__cluster_metadata", "__consumer_offsets", "__transaction_state", "__share_group_state"]
)
def test_kafkas_internal_topics_cannot_be_created(broker: Broker, name: str) -> None:
    with pytest.raises(ApiError) as refused:
        broker.topics.create(name, 1, {})

    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert refused.value.message == f"Creation of internal topic {name} is prohibited."
    assert name not in broker.topics.by_name


def test_an_internal_topic_of_an_earlier_run_can_be_deleted() -> None:
    store = MetadataStore(":memory:")
    store.put_topic(TopicRow("__consumer_offsets", b"i" * 16, 1))
    topics = make_broker(metadata=store).topics
    (topic,) = topics
    assert topic.is_internal

    topics.delete(topic)

    assert list(topics) == []


@pytest.mark.parametrize("count", [1, MAX_PARTITIONS])
def test_a_legal_number_of_partitions_is_accepted(count: int) -> None:
    check_partitions(count)


@pytest.mark.parametrize("count", [0, -1, -2, MAX_PARTITIONS + 1, 2**31 - 1, -(2**31)])
def test_an_illegal_number_of_partitions_is_refused(broker: Broker, count: int) -> None:
    assert refusal(lambda: check_partitions(count)) is ErrorCode.INVALID_PARTITIONS
    assert refusal(lambda: broker.topics.create("t", count, {})) is ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("properties", [{"nonsense": "1"}, {"retention.ms": "soon"}, {"segment.bytes": "1"}])
def test_an_illegal_configuration_is_refused(broker: Broker, properties: dict[str, str]) -> None:
    assert refusal(lambda: broker.topics.create("t", 1, properties)) is ErrorCode.INVALID_CONFIG
    assert broker.topics.named("t") is None


def test_reserved_and_used_ids_are_not_assigned(broker: Broker) -> None:
    dash = bytes([62 << 2]) + bytes(15)
    taken = broker.topics.create("taken", 1, {}).id
    good = b"\x01" * 16
    candidates = iter([NIL_UUID, bytes(15) + b"\x01", dash, taken, good])
    broker.topics.random_uuid = lambda: next(candidates)

    topic = broker.topics.create("t", 1, {})

    assert topic.id == good


def test_the_hosts_defaults_apply_to_a_topic(tmp_path: Path) -> None:
    clock = MockClock()
    logs = LogManager(tmp_path, now_ms=clock.now_ms())
    defaults = dataclasses.replace(make_broker().topics.defaults, retention_ms=5)
    topics = ChangeableTopics(MetadataStore(":memory:"), logs, clock, lambda: b"\x01" * 16, defaults)

    topic = topics.create("t", 1, {"retention.bytes": "7"})

    assert (topic.config.retention_ms, topic.config.retention_bytes) == (5, 7)
    logs.close()


@pytest.mark.parametrize("epoch", [-1, 0])
def test_the_current_leader_epoch_or_none_is_accepted(epoch: int) -> None:
    check_leader_epoch(epoch)


@pytest.mark.parametrize(
    ("epoch", "code"),
    [
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2**31 - 1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_an_unknown_leader_epoch_is_refused(epoch: int, code: ErrorCode) -> None:
    assert refusal(lambda: check_leader_epoch(epoch)) is code
