"""The logs of one data directory."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.batches import NOW_MS, batch_of, values_from

CONFIG = LogConfig()
ONE, TWO = bytes(range(16)), bytes(range(1, 17))


def manager_of(directory: Path, max_open_files: int = 512) -> LogManager:
    return LogManager(directory, now_ms=NOW_MS, max_open_files=max_open_files)


def test_a_log_is_a_folder(tmp_path: Path) -> None:
    manager = manager_of(tmp_path / "data" / "logs")

    log = manager.open("pushes", 3, CONFIG)

    assert log.log_end_offset == 0
    assert (tmp_path / "data" / "logs" / "pushes-3" / "00000000000000000000.log").is_file()
    assert manager.log("pushes", 3) is log
    assert manager.log("pushes", 0) is None
    assert list(manager) == [log]


def test_logs_survive_a_restart(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    for partition in range(3):
        manager.open("a-b", partition, CONFIG).append(batch_of(b"%d" % partition), NOW_MS)
    manager.close()

    again = manager_of(tmp_path)

    assert [values_from(again.open("a-b", partition, CONFIG)) for partition in range(3)] == [
        [(0, b"0")],
        [(0, b"1")],
        [(0, b"2")],
    ]
    assert len(manager) == 0


def test_opening_a_log_again_changes_its_configuration(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = manager.open("pushes", 0, CONFIG)
    other = LogConfig(max_message_bytes=100)

    again = manager.open("pushes", 0, other)

    assert again is log
    assert log.config is other


def test_a_deleted_log_is_gone(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    log = manager.open("pushes", 0, CONFIG)
    log.append(batch_of(b"x"), NOW_MS)
    heard: list[int] = []
    log.listeners.add(heard.append)

    manager.delete("pushes", 0)

    assert list(tmp_path.iterdir()) == []
    assert manager.log("pushes", 0) is None
    assert heard == [0]
    assert manager.open("pushes", 0, CONFIG).log_end_offset == 0


def test_deleting_an_unknown_log_is_no_error(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)

    manager.delete("pushes", 0)

    assert len(manager) == 0


def test_waiters_of_a_log_that_cannot_be_deleted_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_of(tmp_path)
    log = manager.open("pushes", 0, CONFIG)
    heard: list[int] = []
    log.listeners.add(heard.append)

    def failing(*_paths: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("os.rename", failing)

    with pytest.raises(ApiError, match="cannot delete"):
        manager.delete("pushes", 0)

    assert (heard, log.closed) == ([0], True)


def test_a_half_deleted_log_is_removed_at_the_next_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = manager_of(tmp_path)
    manager.open("pushes", 0, CONFIG, ONE)
    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda *_, **__: None)
        manager.delete("pushes", 0)
        manager.open("pushes", 0, CONFIG, ONE)
        manager.delete("pushes", 0)
    assert len(list(tmp_path.glob("pushes-0.*-delete"))) == 2

    manager_of(tmp_path)

    assert list(tmp_path.iterdir()) == []


def test_the_longest_topic_name_can_be_deleted(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    manager.open("x" * 249, 99999, CONFIG, ONE)

    manager.delete("x" * 249, 99999)

    assert list(tmp_path.iterdir()) == []


def test_the_folder_names_its_topic_id(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)

    manager.open("pushes", 0, CONFIG, ONE)

    text = (tmp_path / "pushes-0" / "partition.metadata").read_text()
    assert text == "version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODw\n"


@pytest.mark.parametrize(
    ("first_id", "second_id", "kept"),
    [(ONE, ONE, True), (ONE, TWO, False), (bytes(16), TWO, True), (ONE, bytes(16), True)],
    ids=["same topic", "another topic of the same name", "folder without id", "caller without id"],
)
def test_records_of_a_deleted_topic_do_not_appear_in_the_next_one(
    tmp_path: Path, first_id: bytes, second_id: bytes, kept: bool
) -> None:
    manager = manager_of(tmp_path)
    manager.open("pushes", 0, CONFIG, first_id).append(batch_of(b"x"), NOW_MS)
    manager.close()

    log = manager_of(tmp_path).open("pushes", 0, CONFIG, second_id)

    assert log.log_end_offset == (1 if kept else 0)


STRAY = r"pushes-0\.[0-9a-f]{32}-stray"


def strays(directory: Path) -> list[Path]:
    return [each for each in directory.iterdir() if each.name.endswith("-stray")]


@pytest.mark.parametrize(
    "damage",
    [
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0ODg\n",
        b"version: 0\ntopic_id: AAECAwQFBgcICQoLDA0OD\xd7\n",
        b"version: 0\n",
    ],
    ids=["one bit of the id", "not UTF-8", "no id"],
)
def test_a_folder_that_belongs_to_another_topic_is_set_aside(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    manager = manager_of(tmp_path)
    manager.open("pushes", 0, CONFIG, ONE).append(batch_of(b"x"), NOW_MS)
    manager.close()
    (tmp_path / "pushes-0" / "partition.metadata").write_bytes(damage)

    log = manager_of(tmp_path).open("pushes", 0, CONFIG, ONE)

    [stray] = strays(tmp_path)
    assert re.fullmatch(STRAY, stray.name)
    assert (log.log_end_offset, log.directory) == (0, tmp_path / "pushes-0")
    [line] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert (vars(line)["folder"], vars(line)["set_aside"]) == (str(tmp_path / "pushes-0"), str(stray))
    assert "partition.metadata" in vars(line)["way_back"]


def test_the_way_back_of_a_folder_that_was_set_aside(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    manager.open("pushes", 0, CONFIG, ONE).append(batch_of(b"x"), NOW_MS)
    manager.close()
    again = manager_of(tmp_path)
    again.open("pushes", 0, CONFIG, TWO)
    again.close()
    [stray] = strays(tmp_path)
    shutil.rmtree(tmp_path / "pushes-0")
    stray.rename(tmp_path / "pushes-0")
    (tmp_path / "pushes-0" / "partition.metadata").unlink()

    log = manager_of(tmp_path).open("pushes", 0, CONFIG, TWO)

    assert values_from(log) == [(0, b"x")]


def test_an_empty_metadata_file_contradicts_nothing(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    manager.open("pushes", 0, CONFIG, ONE).append(batch_of(b"x"), NOW_MS)
    manager.close()
    (tmp_path / "pushes-0" / "partition.metadata").write_bytes(b"")

    log = manager_of(tmp_path).open("pushes", 0, CONFIG, ONE)

    assert log.log_end_offset == 1
    assert (tmp_path / "pushes-0" / "partition.metadata").stat().st_size > 0


def test_unknown_partitions_are_set_aside(tmp_path: Path) -> None:
    manager = manager_of(tmp_path)
    for topic in ("known", "pushes"):
        manager.open(topic, 0, CONFIG, ONE).append(batch_of(b"x"), NOW_MS)
    manager.open("empty", 0, CONFIG, ONE)
    manager.close()
    for name in ("backup-2024", "notes", "known-0.x-stray"):
        (tmp_path / name).mkdir()
    again = manager_of(tmp_path)
    again.open("known", 0, CONFIG, ONE)

    again.discard_unknown()

    names = sorted(re.sub("[0-9a-f]{32}", "ID", each.name) for each in tmp_path.iterdir())
    assert names == ["backup-2024", "known-0", "known-0.x-stray", "notes", "pushes-0.ID-stray"]


def test_the_longest_topic_name_can_be_set_aside(tmp_path: Path) -> None:
    name = "x" * 249
    manager = manager_of(tmp_path)
    manager.open(name, 12345, CONFIG, ONE).append(batch_of(b"x"), NOW_MS)
    manager.close()

    manager_of(tmp_path).open(name, 12345, CONFIG, TWO)

    [stray] = strays(tmp_path)
    assert len(stray.name) == 255
    assert stray.name.startswith("xxx")


def test_a_partition_can_be_set_aside_again_and_again(tmp_path: Path) -> None:
    for topic_id in (ONE, TWO, ONE, TWO):
        manager = manager_of(tmp_path)
        manager.open("pushes", 0, CONFIG, topic_id).append(batch_of(b"x"), NOW_MS)
        manager.close()

    assert len(strays(tmp_path)) == 3


def test_a_copy_is_deleted_only_if_the_original_exists(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    manager = LogManager(one, two, now_ms=NOW_MS)
    manager.open("pushes", 0, CONFIG, ONE).append(batch_of(b"x"), NOW_MS)
    manager.close()
    (one / "pushes-0").rename(two / f"pushes-0.{ONE.hex()}-future")

    LogManager(one, two, now_ms=NOW_MS)

    [stray] = two.iterdir()
    assert re.fullmatch(STRAY, stray.name)


def test_open_descriptors_are_bounded_over_all_logs(tmp_path: Path) -> None:
    manager = manager_of(tmp_path, max_open_files=4)
    before = open_descriptors()
    for partition in range(30):
        manager.open("pushes", partition, CONFIG).append(batch_of(b"x"), NOW_MS)

    open_files = open_descriptors() - before

    assert open_files <= 4
    assert all(values_from(log) == [(0, b"x")] for log in manager)


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_a_directory_that_cannot_be_created_is_a_storage_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(ApiError) as refusal:
        manager_of(tmp_path / "file" / "logs")

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_flushing_reaches_every_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = manager_of(tmp_path)
    for partition in range(2):
        manager.open("pushes", partition, CONFIG)
    flushed: list[int] = []
    monkeypatch.setattr("os.fsync", flushed.append)

    manager.flush()

    assert len(flushed) == 2 * 3


def test_a_failing_flush_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = manager_of(tmp_path)
    manager.open("pushes", 0, CONFIG)

    def failing(descriptor: int) -> None:
        raise OSError(5, f"Input/output error of {descriptor}")

    monkeypatch.setattr("os.fsync", failing)

    with pytest.raises(ApiError) as refusal:
        manager.flush()

    assert refusal.value.code == ErrorCode.KAFKA_STORAGE_ERROR


def test_an_append_counts_even_if_its_flush_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an upkeep the flush runs within the append. If it raised, a retry would append twice."""
    log = manager_of(tmp_path).open("pushes", 0, LogConfig(flush_messages=1))

    def failing(descriptor: int) -> None:
        raise OSError(5, f"Input/output error of {descriptor}")

    monkeypatch.setattr("os.fsync", failing)
    errors: list[ApiError | None] = []

    appended = log.append(batch_of(b"x"), NOW_MS)
    log.when_flushed(errors.append)

    assert appended.base_offset == 0
    assert log.log_end_offset == 1
    assert [error and error.code for error in errors] == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_opening_a_log_does_not_look_at_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    manager = manager_of(tmp_path)
    monkeypatch.delattr(LogManager, "__iter__")

    log = manager.open("pushes", 0, CONFIG)

    assert log.directory.parent == tmp_path
