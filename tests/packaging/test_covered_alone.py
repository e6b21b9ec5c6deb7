"""The files in the list of ``contrib.gate.alone`` are still covered by their own tests."""

from __future__ import annotations

from pathlib import Path

from contrib.gate.alone import covered, lines_of, listed, own_tests


def test_the_list_is_sorted_and_its_files_have_tests_of_their_own() -> None:
    assert listed() == sorted(set(listed()))
    assert set(listed()) <= own_tests().keys()


def test_every_listed_file_is_covered_by_its_own_tests_alone(tmp_path: Path) -> None:
    assert set(listed()) - covered(listed(), tmp_path / "report.json") == set()


def test_a_line_that_no_own_test_executes_is_found(tmp_path: Path) -> None:
    source = tmp_path / "source.py"
    source.write_text("A = 1\n\n\ndef f(x):\n    if x:\n        return 1\n    return 2\n")

    assert lines_of(source) == {5, 6, 7}
