"""Totals that are built again from the log."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from odradek.cli.main import run
from odradek.temporality import BadState
from odradek.temporality.rebuild import begin_again, is_rebuilt
from odradek.temporality.state_file import StateFile
from support.delta_clients import Scene, d


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "totals.db"


def stored(path: Path) -> None:
    """Store a total of 5."""
    scene = Scene()
    with closing(StateFile(path)) as file:
        scene.push(d(5.0, 0, 60))
        file.commit(scene.engine)


def found(path: Path) -> dict[str, float]:
    """The stored totals."""
    scene = Scene()
    with closing(StateFile(path)) as file:
        file.load(scene.engine)
    return scene.totals()


def newer(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("pragma user_version = 9")


def damaged(path: Path) -> None:
    path.write_bytes(b"no database" * 1_000)


def missing(path: Path) -> None:
    """Leave no file."""


def test_a_file_of_totals_asks_for_nothing(path: Path) -> None:
    assert not is_rebuilt(path)

    stored(path)

    assert not is_rebuilt(path)


def test_a_rebuilt_file_is_empty_and_asks_for_the_log_until_its_first_commit(path: Path) -> None:
    stored(path)

    old = begin_again(path)

    assert old == path.with_name("totals.db.old")
    assert (is_rebuilt(path), found(path), found(old)) == (True, {}, {"c": 5})
    stored(path)
    assert (is_rebuilt(path), found(path)) == (False, {"c": 5})


@pytest.mark.parametrize("state", [newer, damaged, missing])
def test_any_file_can_be_built_again(path: Path, state: Callable[[Path], None]) -> None:
    state(path)

    old = begin_again(path)

    assert is_rebuilt(path)
    assert (old is None) is (state is missing)
    assert sorted(each.name for each in path.parent.iterdir()) == sorted(
        each.name for each in (path, old) if each is not None
    )


def test_it_may_be_asked_for_twice(path: Path) -> None:
    stored(path)
    begin_again(path)

    begin_again(path)

    assert is_rebuilt(path)


@pytest.mark.parametrize("state", [newer, damaged])
def test_a_file_that_cannot_be_read_is_refused_with_what_to_do(
    path: Path, state: Callable[[Path], None]
) -> None:
    state(path)

    with pytest.raises(BadState) as caught:
        StateFile(path).open()

    assert f"`odradek totals rebuild {path}`" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not is_rebuilt(path)


def test_another_program_s_file_stays(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table theirs (x)")

    status = run(["totals", "rebuild", str(path)])

    assert (status, "another program" in capsys.readouterr().err) == (1, True)
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("select count(*) from theirs").fetchone() == (0,)


def test_the_command_says_what_happens_next(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored(path)

    status = run(["totals", "rebuild", str(path)])

    assert status == 0
    assert capsys.readouterr().out.splitlines() == [
        f"The next start of the host builds the totals in {path} again from the log.",
        f"The old totals are in {path}.old.",
    ]


def test_the_command_needs_a_folder(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = run(["totals", "rebuild", str(path.parent / "missing" / "totals.db")])

    assert (status, "existing folder" in capsys.readouterr().err) == (2, True)
