"""The cost of opening and closing a log, of which a host may have tens of thousands."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from odradek.log.log_config import LogConfig
from odradek.log.log_manager import LogManager
from odradek.log.partition_log import PartitionLog
from odradek.waiting.steps import result_of
from support.batches import NOW_MS, batch_of, values_from

CONFIG = LogConfig(index_interval_bytes=100)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "t-0"
    folder.mkdir()
    return folder


def opened(folder: Path) -> PartitionLog:
    return PartitionLog(folder, CONFIG, NOW_MS)


def filled(log: PartitionLog, records: int = 20) -> PartitionLog:
    for number in range(records):
        log.append(batch_of(b"%d" % number, timestamp_ms=NOW_MS + number), NOW_MS)
    return log


def files(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Which files are in a folder, and whether they are still the same and unchanged."""
    return {
        each.name: (found.st_ino, found.st_mtime_ns, found.st_size)
        for each in folder.iterdir()
        if (found := each.stat())
    }


def index_files(folder: Path) -> set[str]:
    return {name for name in files(folder) if name.endswith("index")}


def test_a_log_that_was_not_changed_is_closed_without_a_write(folder: Path) -> None:
    filled(opened(folder)).close()
    before = files(folder)

    opened(folder).close()

    assert files(folder) == before
    assert len(before) == 4


def test_an_empty_log_has_one_file(folder: Path) -> None:
    opened(folder).close()

    assert set(files(folder)) == {"00000000000000000000.log"}
    assert opened(folder).log_end_offset == 0


def test_indexes_go_before_the_first_append(folder: Path) -> None:
    filled(opened(folder)).close()
    again = opened(folder)
    assert len(index_files(folder)) == 2

    again.append(batch_of(b"more"), NOW_MS)

    assert index_files(folder) == set()
    again.release()


def test_records_after_a_clean_start_survive_a_crash(folder: Path) -> None:
    filled(opened(folder)).close()
    crashed = filled(opened(folder), 7)
    crashed.release()

    again = opened(folder)

    assert again.log_end_offset == 27
    assert [offset for offset, _ in values_from(again)] == list(range(27))
    assert result_of(again.offset_for_time(NOW_MS + 19)) is not None


def test_a_crash_without_an_append_needs_no_recovery(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(opened(folder)).close()
    opened(folder).release()
    recovered: list[object] = []
    monkeypatch.setattr("odradek.log.log_loader.recover", lambda *args, **_: recovered.append(args))

    assert opened(folder).log_end_offset == 20
    assert recovered == []


def test_an_index_that_does_not_fit_is_not_kept(folder: Path) -> None:
    filled(opened(folder)).close()
    segment = folder / "00000000000000000000.log"
    os.truncate(segment, segment.stat().st_size - 1)

    cut = opened(folder)

    assert cut.log_end_offset == 19
    assert index_files(folder) == set()
    cut.close()
    assert opened(folder).log_end_offset == 19


def test_a_snapshot_is_written_only_if_there_is_something_new(folder: Path) -> None:
    log = filled(opened(folder))
    log.close()
    again = opened(folder)
    again.append(batch_of(b"more"), NOW_MS)
    again.close()

    names = sorted(name for name in files(folder) if name.endswith(".snapshot"))
    assert names == [f"{20:020d}.snapshot", f"{21:020d}.snapshot"]


class Calls:
    """Counts calls of functions of ``os`` that list or create files."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
        self.seen: list[str] = []
        for name in names:
            monkeypatch.setattr(os, name, self.counting(name, getattr(os, name)))

    def counting(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kw: Any) -> Any:
            self.seen.append(name)
            return original(*args, **kw)

        return call


def test_a_folder_is_listed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filled(opened(folder)).close()
    calls = Calls(monkeypatch, "listdir", "scandir")

    opened(folder)

    assert len(calls.seen) == 1


# Closing many


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[LogManager]:
    manager = LogManager(tmp_path, now_ms=NOW_MS)
    for index in range(10):
        filled(manager.open("t", index, CONFIG), 10 + index)
    yield manager
    manager.close()


def test_logs_that_are_not_closed_in_time_are_recovered(
    logs: LogManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[int] = []

    def in_time() -> bool:
        closed.append(1)
        return len(closed) <= 4

    logs.close(in_time)

    saved = {each.name for each in tmp_path.iterdir() if index_files(each)}
    assert saved == {"t-9", "t-8", "t-7", "t-6"}  # those that take longest to recover
    [line] = [each for each in caplog.records if each.levelname == "WARNING"]
    assert vars(line)["logs"] == 6
    again = LogManager(tmp_path, now_ms=NOW_MS)
    ends = [again.open("t", index, CONFIG).log_end_offset for index in range(10)]
    assert ends == [10 + index for index in range(10)]
    again.close()


def test_all_files_are_closed_although_the_time_is_over(logs: LogManager) -> None:
    every = list(logs)

    logs.close(lambda: False)

    assert len(logs.files) == 0
    assert all(each.closed for each in every)


def test_unchanged_logs_need_no_time(
    logs: LogManager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    logs.close()
    again = LogManager(tmp_path, now_ms=NOW_MS)
    for index in range(10):
        again.open("t", index, CONFIG)

    again.close(lambda: False)

    assert caplog.records == []
