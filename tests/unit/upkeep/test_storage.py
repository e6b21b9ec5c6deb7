from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from odradek.log.directory_format import FORMAT_FILE, FORMAT_VERSION, version_of
from odradek.log.log_config import LogConfig
from odradek.metadata.store import CLUSTER_ID, MetadataStore, TopicRow
from odradek.plugin.config import ConfigError
from odradek.upkeep.storage import METADATA_FILE, Storage
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of
from support.failing_connection import UnreadableConnection


def test_stored_data_survives_a_restart(tmp_path: Path) -> None:
    first = Storage(tmp_path, 0)
    first.metadata.put_value("key", "value")
    first.close()

    second = Storage(tmp_path, 0)

    assert second.metadata.value("key") == "value"
    second.close()


@pytest.mark.parametrize("damage", ["not a database", "a newer version", "a folder"])
def test_a_foreign_metadata_file_is_refused_and_no_file_stays_open(tmp_path: Path, damage: str) -> None:
    path = tmp_path / METADATA_FILE
    if damage == "a folder":
        path.mkdir()
    elif damage == "not a database":
        path.write_bytes(b"something else entirely" * 100)
    else:
        connection = sqlite3.connect(path)
        connection.execute("pragma user_version = 99")
        connection.close()

    with pytest.raises(ConfigError, match=METADATA_FILE):
        Storage(tmp_path, 0)

    path.rmdir() if path.is_dir() else path.unlink()
    Storage(tmp_path, 0).close()


def test_a_metadata_file_of_a_newer_release_is_refused_unchanged_even_to_rebuild_it(tmp_path: Path) -> None:
    path = tmp_path / METADATA_FILE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table topics_by_shelf (shelf text)")
        connection.execute("pragma user_version = 2")
    before = path.read_bytes()
    (tmp_path / "logs/t-0").mkdir(parents=True)
    (tmp_path / "logs/t-0" / f"{0:020d}.log").write_bytes(b"records")

    with pytest.raises(ConfigError, match=r"metadata\.db has version 2 .* supports versions up to 1"):
        Storage(tmp_path, 0, recover_metadata=True)

    assert path.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == [".lock", "logs", METADATA_FILE]


def test_each_log_directory_has_its_version(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]

    Storage(tmp_path, 0, directories).close()

    for directory in directories:
        assert version_of(directory) == FORMAT_VERSION


def test_logs_of_a_newer_release_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    directories = [tmp_path / "one", tmp_path / "two"]
    directories[1].mkdir()
    (directories[1] / FORMAT_FILE).write_text("version=7\n")

    with pytest.raises(ConfigError, match=r"log\.dirs: .*two/odradek\.properties has version 7 of the log"):
        Storage(tmp_path / "data", 0, directories)

    assert not (tmp_path / "data" / METADATA_FILE).exists()
    (directories[1] / FORMAT_FILE).unlink()
    Storage(tmp_path / "data", 0, directories).close()


def test_a_directory_whose_version_cannot_be_read_is_offline(tmp_path: Path) -> None:
    (tmp_path / "two" / FORMAT_FILE).mkdir(parents=True)

    storage = Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"])

    assert storage.logs.online == [tmp_path / "one"]
    storage.close()


def test_a_directory_whose_version_cannot_be_written_is_offline(tmp_path: Path) -> None:
    (tmp_path / "two" / f"{FORMAT_FILE}.tmp").mkdir(parents=True)

    storage = Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"])

    assert storage.logs.online == [tmp_path / "one"]
    storage.close()


def test_logs_are_in_log_dirs(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"])

    assert storage.logs.directories == (tmp_path / "one", tmp_path / "two")
    assert not (tmp_path / "data" / "logs").exists()
    storage.close()


def test_the_metadata_may_be_in_a_directory_of_logs(tmp_path: Path) -> None:
    first = Storage(tmp_path, 0, [tmp_path])
    first.metadata.put_value("key", "value")
    first.metadata.put_value(CLUSTER_ID, "id")
    log = first.logs.open("t", 0, LogConfig(), bytes(15) + b"1", 0)
    log.append(batch_of(b"x"), now_ms=NOW_MS)
    first.close()

    second = Storage(tmp_path, 0, [tmp_path])

    assert second.metadata.value("key") == "value"
    assert second.logs.open("t", 0, LogConfig(), bytes(15) + b"1", 0).log_end_offset == 1
    second.close()


def test_a_directory_belongs_to_one_host(tmp_path: Path) -> None:
    first = Storage(tmp_path / "data", 0, [tmp_path / "one"])

    with pytest.raises(ConfigError, match=r"log\.dirs: .*one is in use"):
        Storage(tmp_path / "other", 0, [tmp_path / "two", tmp_path / "one"])

    first.close()
    Storage(tmp_path / "other", 0, [tmp_path / "two", tmp_path / "one"]).close()


def test_a_repeated_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "one")

    with pytest.raises(ConfigError, match=r"log\.dirs"):
        Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "link"])


def test_a_log_directory_that_cannot_be_used_is_offline(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("")

    storage = Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"])

    assert storage.logs.online == [tmp_path / "one"]
    assert storage.logs.open("t", 0, LogConfig()).directory.parent == tmp_path / "one"
    storage.close()


def test_a_host_without_a_log_directory_does_not_start(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text("")

    with pytest.raises(ConfigError, match=r"log\.dirs: .*two cannot be used: File exists"):
        Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"])

    Storage(tmp_path / "data", 0).close()


def test_metadata_is_not_recovered_without_a_directory(tmp_path: Path) -> None:
    (tmp_path / "two").write_text("")

    with pytest.raises(ConfigError, match=r"log\.dirs: .*two cannot be used: File exists"):
        Storage(tmp_path / "data", 0, [tmp_path / "one", tmp_path / "two"], recover_metadata=True)


def test_the_data_directory_can_contain_logs_itself(tmp_path: Path) -> None:
    storage = Storage(tmp_path, 0, [tmp_path])

    assert storage.logs.directories == (tmp_path,)
    storage.close()


def test_a_log_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("")

    with pytest.raises(ConfigError, match=r"data\.dir"):
        Storage(tmp_path, 0)


ONE, TWO = bytes(range(16)), bytes(range(1, 17))


def stored(path: Path, *partitions: tuple[str, int, bytes], log_dirs: Sequence[Path] = ()) -> None:
    """A data directory in which each of these partitions has a record."""
    storage = Storage(path, 0, log_dirs)
    storage.metadata.put_value(CLUSTER_ID, "id")
    for topic, index, topic_id in partitions:
        log = storage.logs.open(topic, index, LogConfig(), topic_id, 0)
        log.append(batch_of(b"x"), now_ms=NOW_MS)
    storage.close()


def contents(path: Path) -> dict[str, bytes]:
    return {str(each.relative_to(path)): each.read_bytes() for each in path.rglob("*") if each.is_file()}


DAMAGES: dict[str, Callable[[Path], object]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "not a database": lambda path: path.write_bytes(b"something else entirely" * 100),
    "torn": lambda path: path.write_bytes(path.read_bytes()[:5000]),
    "a page of zeros": lambda path: path.write_bytes(path.read_bytes()[:4096] + bytes(4096) * 8),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_lost_metadata_file_beside_records_is_refused_and_nothing_changes(
    tmp_path: Path, damage: str
) -> None:
    stored(tmp_path, ("t", 0, ONE))
    DAMAGES[damage](tmp_path / METADATA_FILE)
    before = contents(tmp_path)

    with pytest.raises(ConfigError, match=r"metadata\.db .*--recover-metadata") as refusal:
        Storage(tmp_path, 0)

    assert contents(tmp_path) == before
    assert "\n" not in str(refusal.value)


def test_a_metadata_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    storage = Storage(tmp_path, 0)
    unreadable: Any = UnreadableConnection(storage.metadata.connection)
    storage.metadata.connection = unreadable

    message = r"data\.dir: .*metadata\.db cannot be used: disk I/O error"
    with pytest.raises(ConfigError, match=message), storage.loading():
        storage.metadata.topics()

    storage.close()


def test_a_stored_configuration_that_is_not_valid_is_one_line(tmp_path: Path) -> None:
    storage = Storage(tmp_path, 0)

    message = r"metadata\.db is damaged: Invalid value - for configuration retention\.ms; restore"
    with pytest.raises(ConfigError, match=message), storage.loading():
        raise ApiError(ErrorCode.INVALID_CONFIG, "Invalid value -\n for configuration retention.ms")

    storage.close()


def test_a_metadata_file_that_only_has_users_is_refused_beside_records(tmp_path: Path) -> None:
    stored(tmp_path, ("t", 0, ONE))
    (tmp_path / METADATA_FILE).unlink()
    MetadataStore(tmp_path / METADATA_FILE).close()  # as `odradek users` does

    with pytest.raises(ConfigError, match="was never used by a host, but the logs hold records"):
        Storage(tmp_path, 0)


@pytest.mark.parametrize("damage", DAMAGES)
def test_metadata_is_recovered_from_the_partitions(tmp_path: Path, damage: str) -> None:
    stored(tmp_path, ("a-b", 2, ONE), ("c", 0, TWO))
    DAMAGES[damage](tmp_path / METADATA_FILE)

    storage = Storage(tmp_path, NOW_MS, recover_metadata=True)

    assert storage.metadata.topics() == [TopicRow("a-b", ONE, 3), TopicRow("c", TWO, 1)]
    assert storage.metadata.resource(2, "c")["retention.ms"] == "-1"
    assert storage.metadata.allocate_producer_id() >= NOW_MS
    aside = [each for each in tmp_path.iterdir() if each.name.endswith("-stray")]
    assert len(aside) == (0 if damage == "missing" else 1)
    storage.close()


def test_users_survive_a_recovery_if_the_file_is_intact(tmp_path: Path) -> None:
    stored(tmp_path, ("t", 0, ONE))
    (tmp_path / METADATA_FILE).unlink()
    metadata = MetadataStore(tmp_path / METADATA_FILE)
    metadata.put_value("of the user", "1")
    metadata.close()

    storage = Storage(tmp_path, 0, recover_metadata=True)

    assert storage.metadata.value("of the user") == "1"
    assert storage.metadata.topics() == [TopicRow("t", ONE, 1)]
    storage.close()


def test_recovery_leaves_an_intact_file_alone(tmp_path: Path) -> None:
    stored(tmp_path, ("t", 0, ONE))
    before = contents(tmp_path)[METADATA_FILE]

    Storage(tmp_path, 0, recover_metadata=True).close()

    assert contents(tmp_path)[METADATA_FILE] == before


def test_the_id_of_most_partitions_is_recovered(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    partitions = [("t", 0, TWO), ("t", 1, ONE), ("t", 2, ONE)]
    stored(tmp_path, *partitions, ("copy", 0, ONE), ("x", 0, TWO), log_dirs=[one, two])
    (tmp_path / METADATA_FILE).unlink()
    [unreadable] = tmp_path.glob("*/x-0/partition.metadata")
    unreadable.write_bytes(b"\xff")

    storage = Storage(tmp_path, 0, [one, two], recover_metadata=True)

    recovered = {each.name: each for each in storage.metadata.topics()}
    assert recovered["t"] == TopicRow("t", ONE, 3)
    assert recovered.keys() == {"t", "x"}
    assert recovered["x"].id not in (ONE, TWO)
    storage.close()


def test_a_second_attempt_follows_a_recovery_that_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(tmp_path, ("t", 0, ONE))
    (tmp_path / METADATA_FILE).write_bytes(b"something else entirely" * 100)

    def killed(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr("odradek.upkeep.metadata_recovery.fill", killed)
        with pytest.raises(ZeroDivisionError):
            Storage(tmp_path, 0, recover_metadata=True)

    with pytest.raises(ConfigError, match="was never used by a host"):
        Storage(tmp_path, 0)
    storage = Storage(tmp_path, 0, recover_metadata=True)
    assert storage.metadata.topics() == [TopicRow("t", ONE, 1)]
    storage.close()


def test_logs_that_are_not_closed_in_time_do_not_keep_the_locks(tmp_path: Path) -> None:
    first = Storage(tmp_path, 0)
    first.metadata.put_value(CLUSTER_ID, "the-cluster")
    first.logs.open("t", 0, LogConfig()).append(batch_of(b"hello"), NOW_MS)

    first.close(lambda: False)

    second = Storage(tmp_path, 0)
    assert second.logs.open("t", 0, LogConfig()).log_end_offset == 1
    second.close()


def test_every_write_to_the_metadata_file_counts_as_a_change(tmp_path: Path) -> None:
    storage = Storage(tmp_path, 0)
    before = storage.changes()

    storage.metadata.put_value(CLUSTER_ID, "the-cluster")

    assert storage.changes() == before + 1
    storage.close()
