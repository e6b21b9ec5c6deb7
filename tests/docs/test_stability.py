"""The names that ``reference/stability.md`` promises are those of a list; each change is in the changelog."""

from __future__ import annotations

import doctest
import importlib
import re
from fnmatch import fnmatchcase

import pytest
from contrib.docs.public_names import INTERFACE, ROOMS, Written, changed, public, written

from odradek.plugin import API_VERSION
from support.reference_page import ROOT, page, rows, sections

CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
UNRELEASED = CHANGELOG.partition("## [Unreleased]")[2].partition("\n## [")[0]
QUOTED = {word for quoted in re.findall(r"`([^`]+)`", UNRELEASED) for word in re.findall(r"\w+", quoted)}
LIST = written()


def short(change: str) -> str:
    """The last part of a name, without arguments."""
    return change.partition("(")[0].rpartition(".")[2].split()[-1]


def test_the_list_has_the_public_names() -> None:
    assert list(changed(LIST).changes) == list(LIST.changes), (
        "name the difference in CHANGELOG.md, and run: python -m contrib.docs.public_names"
    )


def test_each_change_is_in_the_changelog() -> None:
    assert [change for change in LIST.changes if short(change) not in QUOTED] == []


def test_the_version_of_the_interface_grows_with_it() -> None:
    adds = any(change.startswith((f"+ {INTERFACE}.", "+ hook ")) for change in LIST.changes)
    is_released = f"## [{LIST.release}]" in CHANGELOG

    assert LIST.api_version + (adds and is_released) == API_VERSION


def test_a_change_is_seen() -> None:
    old = Written("0.1.0", 1, frozenset(public()) - {"hook odradek_source(config)"} | {"odradek.plugin.gone"})

    new = changed(old)

    assert new.changes == ("+ hook odradek_source(config)", "- odradek.plugin.gone")
    assert [short(change) for change in new.changes] == ["odradek_source", "gone"]
    assert new.now == frozenset(public())


@pytest.mark.parametrize("room", ROOMS)
def test_the_page_has_each_room(room: str) -> None:
    assert f"`{room}" in page("reference/stability.md")


@pytest.mark.parametrize("room", [room for room in ROOMS if room.startswith("odradek.testing")])
def test_each_name_of_the_kit_is_a_row(room: str) -> None:
    described = list(rows(sections("reference/testing.md")[room]))[1:]

    assert sorted(described) == sorted(importlib.import_module(room).__all__)


@pytest.mark.parametrize("room", [room for room in ROOMS if not fnmatchcase(room, "odradek.testing.*")])
def test_the_example_of_a_room_runs(room: str) -> None:
    result = doctest.testmod(importlib.import_module(room))

    assert result.attempted >= 2
    assert result.failed == 0
