from __future__ import annotations

from pathlib import Path

import pytest

from odradek.cli.reset_file import read_reset_file
from odradek.plugin.config import ConfigError


def test_one_group_needs_no_name_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_text('orders,0,3\n\n"orders",1, 4\n')

    plan = read_reset_file(file, one_group=True)

    assert plan.get("any") == {("orders", 0): 3, ("orders", 1): 4}


@pytest.mark.parametrize("one_group", [True, False])
def test_several_groups_are_selected_by_name(tmp_path: Path, one_group: bool) -> None:
    file = tmp_path / "plan.csv"
    file.write_text("a,orders,0,3\nb,orders,0,4\n")

    plan = read_reset_file(file, one_group)

    assert plan.get("a") == {("orders", 0): 3}
    assert plan.get("b") == {("orders", 0): 4}
    assert plan.get("c") is None


@pytest.mark.parametrize(
    ("line", "one_group"),
    [
        ("orders,0,3", False),
        ("orders,0", True),
        ("orders,x,3", True),
        ("orders,0,-3", True),
        ("orders,-1,3", True),
        ("a,b,orders,0,3", True),
    ],
)
def test_an_unreadable_line_is_named(tmp_path: Path, line: str, one_group: bool) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(f"a,orders,0,3\n{line}\n")

    with pytest.raises(ConfigError) as refused:
        read_reset_file(file, one_group)

    assert refused.value.path == f"--from-file {file}:2"
    assert f"found {line!r}" in refused.value.problem


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "plan.csv"
    file.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match="cannot be read"):
        read_reset_file(file, one_group=True)
