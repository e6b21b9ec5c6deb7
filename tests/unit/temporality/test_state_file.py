"""The state of an engine in a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from odradek.temporality import BadState, Engine, StoreFailed
from odradek.temporality.state_file import StateFile
from support.delta_clients import A, B, Scene, d

TABLES = ("client", "shape", "position")


def loaded(path: Path) -> Scene:
    scene = Scene()
    with closing(StateFile(path)) as file:
        file.load(scene.engine)
    return scene


def test_totals_and_positions_are_read_again(tmp_path: Path) -> None:
    scene = Scene()
    with closing(StateFile(tmp_path / "totals.db")) as file:
        scene.push(d(5.0, 0, 60), offset=0)
        file.commit(scene.engine)
        scene.push(d(3.0, 0, 60), instance=B, offset=1)
        scene.push(d(2.0, 60, 120), offset=2)
        file.commit(scene.engine)

    again = loaded(tmp_path / "totals.db")
    again.push(d(2.0, 60, 120), offset=2)
    again.push(d(1.0, 120, 180), offset=3)

    assert (again.values(), again.values(B)) == ([("c", 8, 0)], [("c", 3, 0)])
    assert again.engine.counts.lost_records == 0


def test_what_was_not_committed_is_not_there(tmp_path: Path) -> None:
    scene = Scene()
    with closing(StateFile(tmp_path / "totals.db")) as file:
        scene.push(d(5.0, 0, 60))
        file.commit(scene.engine)
        scene.push(d(3.0, 60, 120))

    assert loaded(tmp_path / "totals.db").totals() == {"c": 5}


def test_forgotten_clients_and_their_shapes_leave_the_file(tmp_path: Path) -> None:
    scene = Scene()
    with closing(StateFile(tmp_path / "totals.db")) as file:
        scene.push(d(5.0, 0, 60))
        file.commit(scene.engine)
        scene.engine.clients.forget(A)
        file.commit(scene.engine)

        rows = [file.connection.execute(f"select count(*) from {each}").fetchone()[0] for each in TABLES]

    assert rows == [0, 0, 1]


def test_a_failed_commit_changes_nothing(tmp_path: Path) -> None:
    scene = Scene()
    with closing(StateFile(tmp_path / "totals.db")) as file:
        scene.push(d(5.0, 0, 60))
        file.commit(scene.engine)
        scene.push(d(3.0, 60, 120))
        file.connection.execute(
            "create trigger full before insert on client begin select raise(abort, 'full'); end"
        )

        with pytest.raises(StoreFailed, match="full"):
            file.commit(scene.engine)

    assert loaded(tmp_path / "totals.db").totals() == {"c": 5}


def test_another_program_s_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("create table theirs (x)")

    with pytest.raises(BadState, match="another program"):
        StateFile(path).open()


def test_a_newer_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "totals.db"
    with closing(StateFile(path)) as file:
        file.connection.execute("pragma user_version = 99")

    with pytest.raises(BadState, match="version 99"):
        StateFile(path).open()


def test_a_file_of_junk_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "junk.db"
    path.write_bytes(b"junk" * 1000)

    with pytest.raises(BadState, match="not a file of totals"):
        StateFile(path).open()


@pytest.mark.parametrize("damage", [b"", b"\x09", b"\x01" * 80])
def test_a_damaged_state_is_refused(tmp_path: Path, damage: bytes) -> None:
    scene = Scene()
    with closing(StateFile(tmp_path / "totals.db")) as file:
        scene.push(d(5.0, 0, 60))
        file.commit(scene.engine)
        file.connection.execute("update client set state = ?", (damage,))

        with pytest.raises(BadState, match=r"odradek totals rebuild .*totals\.db"):
            file.load(Engine())
