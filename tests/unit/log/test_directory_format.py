from __future__ import annotations

from pathlib import Path

import pytest

from odradek.log.directory_format import (
    FORMAT_FILE,
    FORMAT_VERSION,
    STEPS,
    FormatError,
    migrate,
    refuse_newer,
    version_of,
)

HERE = f"version={FORMAT_VERSION}\n"


def test_a_directory_from_before_the_file_has_version_0(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()

    version = version_of(tmp_path)

    assert version == 0


def test_an_older_directory_is_migrated_once_step_by_step(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    migrate(tmp_path)
    seen: list[int] = []
    later = (
        lambda _: seen.append(1),
        lambda directory: seen.append(version_of(directory)),
        lambda directory: seen.append(version_of(directory)),
    )

    for _ in range(2):
        migrate(tmp_path, later)

    assert seen == [1, 2]
    assert version_of(tmp_path) == 3
    assert sorted(each.name for each in tmp_path.iterdir()) == [FORMAT_FILE, "t-0"]


def test_a_step_that_fails_is_repeated_by_the_next_start(tmp_path: Path) -> None:
    calls: list[Path] = []

    def failing(directory: Path) -> None:
        calls.append(directory)
        if len(calls) == 1:
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        migrate(tmp_path, (*STEPS, failing))
    after_failure = version_of(tmp_path)
    migrate(tmp_path, (*STEPS, failing))

    assert (after_failure, version_of(tmp_path)) == (FORMAT_VERSION, FORMAT_VERSION + 1)
    assert calls == [tmp_path, tmp_path]


def test_a_newer_directory_is_refused_with_words(tmp_path: Path) -> None:
    (tmp_path / FORMAT_FILE).write_text(f"version={FORMAT_VERSION + 1}\n")

    with pytest.raises(FormatError) as refused:
        refuse_newer(tmp_path)

    told = str(refused.value)
    assert f"{tmp_path / FORMAT_FILE} has version {FORMAT_VERSION + 1} of the log format" in told
    assert f"supports versions up to {FORMAT_VERSION}: start the release that wrote it" in told


@pytest.mark.parametrize("content", [HERE, f"# a comment\n{HERE}", f"{HERE}later.key=x\n"])
def test_a_directory_of_this_version_is_accepted_and_not_written(tmp_path: Path, content: str) -> None:
    (tmp_path / FORMAT_FILE).write_text(content)

    refuse_newer(tmp_path)
    migrate(tmp_path)

    assert (tmp_path / FORMAT_FILE).read_text() == content


@pytest.mark.parametrize("content", [b"", b"version=\n", b"version=one\n", b"\xff\x00", b"xversion=1\n"])
def test_a_file_without_a_version_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FORMAT_FILE).write_bytes(content)

    with pytest.raises(FormatError, match=f"{FORMAT_FILE} has no line version=NUMBER"):
        refuse_newer(tmp_path)


def test_a_directory_whose_file_cannot_be_read_is_an_error_of_its_disk(tmp_path: Path) -> None:
    (tmp_path / FORMAT_FILE).mkdir()

    with pytest.raises(IsADirectoryError):
        refuse_newer(tmp_path)
