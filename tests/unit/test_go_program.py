"""Programs of ``contrib`` that are built with Go: kept until their sources change, refused without Go."""

from __future__ import annotations

from pathlib import Path

import pytest
from contrib.go_program import UNAVAILABLE, GoProgram


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ODRADEK_TRIAL_CACHE", str(tmp_path / "cache"))


def program(source: Path) -> GoProgram:
    """A program whose build copies its source."""

    def build(folder: Path, path: Path) -> None:
        path.write_bytes((folder / source.name).read_bytes())

    return GoProgram(name="trial", sources=(source,), build=build)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "go.mod"
    path.write_text("module one")
    return path


@pytest.fixture
def with_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.touch(0o700)
    monkeypatch.setenv("PATH", str(go.parent))


@pytest.mark.usefixtures("with_go")
def test_a_program_is_built_again_when_its_sources_have_changed(source: Path, tmp_path: Path) -> None:
    first = program(source).path()
    source.write_text("module two")

    second = program(source).path()

    assert (first.read_text(), second.read_text()) == ("module one", "module two")
    assert first.is_relative_to(tmp_path / "cache")


@pytest.mark.usefixtures("with_go")
def test_a_program_in_the_cache_is_not_built(source: Path) -> None:
    program(source).path().write_text("built")

    again = program(source).path()

    assert again.read_text() == "built"


def test_without_go_the_status_tells_the_tests_to_skip(
    source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    status = program(source).main()

    assert (status, capsys.readouterr()) == (UNAVAILABLE, ("", "go is not installed\n"))
