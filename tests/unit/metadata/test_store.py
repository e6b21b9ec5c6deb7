from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odradek.metadata.client_quota_store import ClientQuotaStore
from odradek.metadata.credential_store import CredentialStore
from odradek.metadata.failure import MetadataFailure
from odradek.metadata.schema import SCHEMA_VERSION, STEPS, migrate, version_of
from odradek.metadata.store import PRODUCER_ID_BLOCK, MetadataStore, StoreError, TopicRow
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.failing_connection import FailingConnection, UnreadableConnection

SUBSCRIPTION, TOPIC = 16, 2
ID_1, ID_2 = bytes(15) + b"\x02", bytes(15) + b"\x03"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "metadata.db"


@pytest.fixture
def store(file: Path) -> Iterator[MetadataStore]:
    opened = MetadataStore(file)
    yield opened
    opened.close()


def reopened(store: MetadataStore) -> MetadataStore:
    """The same file, as the next process opens it."""
    store.close()
    return MetadataStore(store.path)


def test_a_new_store_is_empty(store: MetadataStore) -> None:
    topics = store.topics()

    assert topics == []
    assert store.resource_names(SUBSCRIPTION) == []
    assert store.resource(SUBSCRIPTION, "x") == {}
    assert store.value("cluster.id") is None


def test_everything_survives_a_restart(store: MetadataStore) -> None:
    store.put_value("cluster.id", "prague")
    store.put_topic(TopicRow("t", ID_1, 3))
    store.put_resource(SUBSCRIPTION, "sub-1", {"metrics": "*", "interval.ms": "1000"})

    after = reopened(store)

    assert after.value("cluster.id") == "prague"
    assert after.topics() == [TopicRow("t", ID_1, 3)]
    assert after.resource(SUBSCRIPTION, "sub-1") == {"metrics": "*", "interval.ms": "1000"}
    after.close()


def test_a_value_can_be_replaced(store: MetadataStore) -> None:
    store.put_value("k", "1")

    store.put_value("k", "2")

    assert store.value("k") == "2"


def test_topics_are_sorted_by_name_and_can_grow_and_be_deleted(store: MetadataStore) -> None:
    store.put_topic(TopicRow("b", ID_1, 1))
    store.put_topic(TopicRow("a", ID_2, 1))
    store.put_topic(TopicRow("b", ID_1, 4))

    store.delete_topic("a")

    assert store.topics() == [TopicRow("b", ID_1, 4)]


def test_deleting_an_unknown_topic_does_nothing(store: MetadataStore) -> None:
    store.delete_topic("nowhere")

    assert store.topics() == []


def test_put_resource_replaces_all_keys(store: MetadataStore) -> None:
    store.put_resource(SUBSCRIPTION, "x", {"metrics": "a", "match": "client_id=y"})

    store.put_resource(SUBSCRIPTION, "x", {"interval.ms": "100"})

    assert store.resource(SUBSCRIPTION, "x") == {"interval.ms": "100"}


def test_a_resource_without_keys_is_not_listed(store: MetadataStore) -> None:
    store.put_resource(SUBSCRIPTION, "gone", {"metrics": "a"})
    store.put_resource(SUBSCRIPTION, "stays", {"metrics": "a"})

    store.put_resource(SUBSCRIPTION, "gone", {})

    assert store.resource_names(SUBSCRIPTION) == ["stays"]


def test_equal_names_of_different_types_are_separate(store: MetadataStore) -> None:
    store.put_resource(SUBSCRIPTION, "x", {"metrics": "a"})

    store.put_resource(TOPIC, "x", {"retention.ms": "1"})

    assert store.resource(SUBSCRIPTION, "x") == {"metrics": "a"}
    assert store.resource_names(TOPIC) == ["x"]


@pytest.mark.parametrize("name", ["with space", "a/b", "ä", "'; drop table configs; --", "x" * 10_000, ""])
def test_any_string_is_a_name(store: MetadataStore, name: str) -> None:
    store.put_resource(SUBSCRIPTION, name, {name: name})

    found = store.resource(SUBSCRIPTION, name)

    assert found == {name: name}
    assert store.resource_names(SUBSCRIPTION) == [name]


def test_a_failed_transaction_leaves_nothing_behind(store: MetadataStore) -> None:
    store.put_resource(SUBSCRIPTION, "x", {"metrics": "a"})

    def half_done() -> None:
        with store.transaction():
            store.put_resource(SUBSCRIPTION, "x", {"metrics": "b"})
            store.put_value("k", "1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()

    assert store.resource(SUBSCRIPTION, "x") == {"metrics": "a"}
    assert store.value("k") is None


def test_an_inner_transaction_joins_the_outer_one(store: MetadataStore) -> None:
    def half_done() -> None:
        with store.transaction():
            with store.transaction():
                store.put_value("inner", "1")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        half_done()

    assert store.value("inner") is None


def test_a_part_of_a_transaction_can_fail_alone(store: MetadataStore) -> None:
    def failing_part() -> None:
        with store.transaction():
            store.put_value("part", "1")
            raise ZeroDivisionError

    with store.transaction():
        store.put_value("before", "1")
        with pytest.raises(ZeroDivisionError):
            failing_part()
        store.put_value("after", "1")

    assert [store.value(key) for key in ("before", "part", "after")] == ["1", None, "1"]


def test_parts_of_parts_can_fail_alone(store: MetadataStore) -> None:
    def failing_part() -> None:
        with store.transaction():
            store.put_value("part of part", "1")
            raise ZeroDivisionError

    with store.transaction(), store.transaction():
        store.put_value("part", "1")
        with pytest.raises(ZeroDivisionError):
            failing_part()

    assert [store.value(key) for key in ("part", "part of part")] == ["1", None]


@pytest.mark.parametrize("statement", ["commit", "release part"])
@pytest.mark.parametrize("rolls_back", [True, False])
def test_a_transaction_that_cannot_be_committed_is_rolled_back(
    store: MetadataStore, statement: str, rolls_back: bool
) -> None:
    connection = store.connection
    failing: Any = FailingConnection(connection, statement, rolls_back=rolls_back)
    store.connection = failing

    def write() -> None:
        with store.transaction():
            store.put_value("k", "1")
            with store.transaction():
                store.put_value("part", "1")

    with pytest.raises(ApiError, match="disk is full") as refusal:
        write()

    store.connection = connection
    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert not connection.in_transaction
    assert (store.value("k"), store.value("part")) == (None, None)


def test_a_part_after_the_disk_was_full_is_not_stored_alone(store: MetadataStore) -> None:
    connection = store.connection

    def write() -> None:
        with store.transaction():
            failing: Any = FailingConnection(connection, "release part", rolls_back=True)
            store.connection = failing
            with pytest.raises(ApiError):
                store.put_value("first part", "1")
            store.connection = connection
            with pytest.raises(ApiError, match="rolled back"):
                store.put_value("second part", "1")

    with pytest.raises(ApiError) as refusal:
        write()

    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (store.value("first part"), store.value("second part")) == (None, None)
    store.put_value("later", "1")
    assert store.value("later") == "1"


def test_a_value_that_cannot_be_written_is_a_storage_error(store: MetadataStore) -> None:
    store.connection.execute("pragma query_only = on")

    with pytest.raises(ApiError) as refusal:
        store.put_value("k", "1")

    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR


READS: dict[str, Callable[[MetadataStore], object]] = {
    "a value": lambda store: store.value("k"),
    "topics": lambda store: store.topics(),
    "names": lambda store: store.resource_names(SUBSCRIPTION),
    "a resource": lambda store: store.resource(SUBSCRIPTION, "x"),
    "a producer id": lambda store: store.allocate_producer_id(),
    "quotas": lambda store: list(ClientQuotaStore(store).quotas()),
    "users": lambda store: CredentialStore(store).credentials(),
}


@pytest.mark.parametrize("read", READS)
def test_a_read_that_fails_is_a_storage_error(
    store: MetadataStore, caplog: pytest.LogCaptureFixture, read: str
) -> None:
    unreadable: Any = UnreadableConnection(store.connection)
    store.connection = unreadable

    with pytest.raises(ApiError, match="the metadata file: disk I/O error") as refusal:
        READS[read](store)

    assert refusal.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    [line] = caplog.records
    assert (line.levelname, line.getMessage(), line.exc_info) == (
        "ERROR",
        "cannot use the metadata file",
        None,
    )
    assert vars(line)["problem"] == "disk I/O error"
    assert vars(line)["file"] == str(store.path)


def test_failures_of_the_file_are_logged_once_a_minute(
    store: MetadataStore, caplog: pytest.LogCaptureFixture
) -> None:
    store.failures.clock = clock = MockClock()
    unreadable: Any = UnreadableConnection(store.connection)
    store.connection = unreadable

    for _ in range(180):
        with pytest.raises(ApiError):
            store.value("k")
        clock.advance(1_000)

    assert [vars(line)["unlogged"] for line in caplog.records] == [0, 59, 59]


def test_the_store_continues_after_a_failed_transaction(store: MetadataStore) -> None:
    with pytest.raises(ZeroDivisionError), store.transaction():
        raise ZeroDivisionError

    store.put_resource(SUBSCRIPTION, "x", {"metrics": "a"})

    with closing(reopened(store)) as again:
        assert again.resource(SUBSCRIPTION, "x") == {"metrics": "a"}


def test_an_unfinished_transaction_of_a_killed_process_is_rolled_back(
    store: MetadataStore, file: Path
) -> None:
    store.put_value("k", "before")
    store.connection.execute("begin immediate")
    store.put_value("k", "after")

    with closing(sqlite3.connect(file)) as other:
        seen = other.execute("select value from host where key = 'k'").fetchone()

    assert seen == ("before",)


def test_producer_ids_increase_and_are_stored_in_blocks(store: MetadataStore) -> None:
    ids = [store.allocate_producer_id() for _ in range(PRODUCER_ID_BLOCK + 2)]

    assert ids == list(range(PRODUCER_ID_BLOCK + 2))
    assert store.value("next.producer.id") == str(2 * PRODUCER_ID_BLOCK)


def test_a_producer_id_is_never_reused_after_a_restart(store: MetadataStore) -> None:
    before = [store.allocate_producer_id() for _ in range(3)]

    with closing(reopened(store)) as again:
        after = again.allocate_producer_id()

    assert after not in before
    assert after == PRODUCER_ID_BLOCK


def test_closing_twice_is_harmless(store: MetadataStore) -> None:
    store.close()

    store.close()

    with pytest.raises(ApiError, match="closed database"):
        store.topics()


def test_a_file_that_is_not_a_database_is_refused(file: Path) -> None:
    file.write_bytes(b"not a database, but long enough to be looked at " * 100)

    with pytest.raises(StoreError, match=r"metadata\.db: "):
        MetadataStore(file)


def test_a_file_of_a_newer_version_is_refused(store: MetadataStore) -> None:
    store.connection.execute(f"pragma user_version = {SCHEMA_VERSION + 1}")

    with pytest.raises(
        StoreError,
        match=f"metadata.db has version {SCHEMA_VERSION + 1} of the metadata format, but odradek .* supports"
        f" versions up to {SCHEMA_VERSION}: start the release that wrote it, or restore a backup",
    ):
        reopened(store)


def test_an_older_file_is_migrated_and_keeps_its_content(store: MetadataStore) -> None:
    store.put_topic(TopicRow("t", ID_1, 3))
    older = version_of(store.connection)

    with store.transaction():
        migrate(store.connection, (*STEPS, "alter table topics add column color text default 'red'"))

    assert (older, version_of(store.connection)) == (SCHEMA_VERSION, SCHEMA_VERSION + 1)
    assert store.read("select name, id, partitions, color from topics") == [("t", ID_1, 3, "red")]


def test_a_migration_that_fails_changes_nothing(store: MetadataStore) -> None:
    steps = (*STEPS, "alter table topics add column color text; alter table missing add column color text")

    with pytest.raises(MetadataFailure), store.transaction():
        migrate(store.connection, steps)

    assert version_of(store.connection) == SCHEMA_VERSION
    assert "color" not in str(store.read("select sql from sqlite_master where name = 'topics'"))


def test_a_migrated_file_is_not_migrated_again(store: MetadataStore) -> None:
    store.put_topic(TopicRow("t", ID_1, 3))

    after = reopened(store)

    assert version_of(after.connection) == SCHEMA_VERSION
    assert after.topics() == [TopicRow("t", ID_1, 3)]
    after.close()


def test_a_reader_does_not_migrate(file: Path) -> None:
    sqlite3.connect(file).close()
    file.touch()

    with pytest.raises(StoreError, match="has version 0 of the metadata format, not 1: start the host once"):
        MetadataStore(file, read_only=True)

    assert file.read_bytes() == b""


def test_a_folder_at_the_path_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        MetadataStore(tmp_path)


def test_a_store_in_memory_needs_no_file() -> None:
    store = MetadataStore(":memory:")

    store.put_value("k", "v")

    assert store.value("k") == "v"


def test_a_write_is_on_disk_when_the_call_returns(store: MetadataStore) -> None:
    (mode,) = store.connection.execute("pragma journal_mode").fetchone()
    (synchronous,) = store.connection.execute("pragma synchronous").fetchone()

    assert (mode, synchronous) == ("wal", 2)


def test_a_commit_does_not_checkpoint_the_write_ahead_log(tmp_path: Path) -> None:
    store = MetadataStore(tmp_path / "metadata.db")
    store.connection.execute("pragma synchronous = off")
    before = (tmp_path / "metadata.db").stat().st_size

    for number in range(1_200):
        store.put_value(f"key {number}", "x" * 1_000)

    assert (tmp_path / "metadata.db").stat().st_size == before
    assert (tmp_path / "metadata.db-wal").stat().st_size > 1_000 * 4_096
    store.close()


def test_another_process_reads_the_file_of_a_host_and_changes_nothing(tmp_path: Path) -> None:
    host = MetadataStore(tmp_path / "metadata.db")
    host.put_value("color", "red")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")}

    reader = MetadataStore(tmp_path / "metadata.db", read_only=True)

    assert reader.value("color") == "red"
    with pytest.raises(MetadataFailure, match="readonly"):
        reader.put_value("color", "blue")
    reader.close()
    assert before == {
        path.name: path.read_bytes() for path in tmp_path.iterdir() if not path.name.endswith("-shm")
    }
    host.close()


def test_a_file_that_does_not_exist_is_not_created_for_a_reader(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        MetadataStore(tmp_path / "metadata.db", read_only=True)

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("column", "value"), [("name", b"t"), ("partitions", "three"), ("partitions", 1.5), ("id", "text")]
)
def test_a_value_of_another_type_is_damage(store: MetadataStore, column: str, value: object) -> None:
    store.put_topic(TopicRow("t", ID_1, 3))
    store.connection.execute(f"update topics set {column} = ?", (value,))

    with pytest.raises(StoreError, match=f"column {column} of table topics has a value of type [a-z]+, not"):
        reopened(store)


def test_damage_of_the_schema_is_told_in_one_line(store: MetadataStore) -> None:
    store.put_topic(TopicRow("t", ID_1, 3))
    store.connection.executescript(
        "pragma writable_schema = on;"
        "update sqlite_master set sql = replace(sql, 'name text', 'name t' || char(10) || 'xt')"
        " where name = 'topics'"
    )

    with pytest.raises(StoreError) as raised:
        reopened(store)

    assert "\n" not in str(raised.value)


def test_a_value_of_another_type_is_found_beside_an_intact_index(store: MetadataStore, file: Path) -> None:
    store.put_topic(TopicRow("t", ID_1, 3))
    store.close()
    content = bytearray(file.read_bytes())
    # the types of the row's columns: text of 1 byte, blob of 16 bytes, integer of 1 byte
    at = content.index(b"\x0f\x2c\x01t" + ID_1)
    content[at + 1] |= 1
    file.write_bytes(content)

    with pytest.raises(StoreError, match="column id of table topics has a value of type text, not BLOB"):
        MetadataStore(file)
