"""The file of an audit log, and what may take its place while a program runs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.endpoints.log_lines import PrivateFileHandler


@pytest.fixture
def file(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder / "audit.log"


@pytest.fixture
def log(file: Path) -> Iterator[logging.Logger]:
    """An audit log that is written to the file."""
    handler = PrivateFileHandler(file, encoding="utf-8")
    log = logging.Logger("audit")
    log.addHandler(handler)
    yield log
    handler.close()


def replaced(file: Path, by: str) -> None:
    file.unlink()
    if by == "a pipe":
        os.mkfifo(file)
    elif by == "a folder":
        file.mkdir()
    else:
        file.parent.rmdir()


def restored(file: Path, by: str) -> None:
    if by == "a pipe":
        file.unlink()
    elif by == "a folder":
        file.rmdir()
    else:
        file.parent.mkdir()


@pytest.mark.parametrize("by", ["a pipe", "a folder", "no folder around it"])
def test_events_that_the_file_cannot_take_are_in_the_log_of_the_program(
    file: Path, log: logging.Logger, by: str, caplog: pytest.LogCaptureFixture
) -> None:
    log.info("first")
    replaced(file, by)

    log.info("second")
    log.info("third")
    restored(file, by)
    log.info("fourth")

    assert caplog.messages == ["second", "third"]
    assert file.read_text("utf-8") == "fourth\n"


def test_the_reader_of_a_pipe_gets_the_events(file: Path, log: logging.Logger) -> None:
    replaced(file, "a pipe")
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)

    log.info("event")
    found = os.read(reader, 100)
    os.close(reader)

    assert found == b"event\n"


def test_a_full_pipe_holds_nobody_up(
    file: Path, log: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    replaced(file, "a pipe")
    reader = os.open(file, os.O_RDONLY | os.O_NONBLOCK)

    for _ in range(200):
        log.info("x" * 1000)
    os.close(reader)

    assert len(caplog.messages) > 100


def test_only_the_owner_reads_the_file(file: Path, log: logging.Logger) -> None:
    log.info("event")

    assert file.stat().st_mode & 0o777 == 0o600
