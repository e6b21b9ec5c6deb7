"""``reference/tables.md`` has every table with its folders and columns, and every view."""

from __future__ import annotations

import re

import pytest

from odradek_tables.query.views import VIEWS
from odradek_tables.schemas import BY_NAME
from support.reference_page import rows, sections

SECTIONS = sections("reference/tables.md")
SHARED = "Shared columns"


def columns(title: str) -> dict[str, str]:
    """The types of the columns that a section describes, by name."""
    return {name: cells[1].strip("`") for name, cells in rows(SECTIONS[title]).items() if name != "column"}


@pytest.mark.parametrize("table", BY_NAME)
def test_a_table_has_each_of_its_columns_with_its_type(table: str) -> None:
    named = re.search(r"Shared columns: (?P<names>[^.]+)\.", SECTIONS[table])
    shared = re.findall(r"`(\w+)`", named["names"]) if named else []
    described = columns(SHARED)

    written = columns(table) | {name: described[name] for name in shared}

    assert not columns(table).keys() & set(shared)
    assert written == {each.name: str(each.type) for each in BY_NAME[table].schema}


@pytest.mark.parametrize("table", BY_NAME)
def test_a_table_names_its_partition_columns(table: str) -> None:
    folders = ", ".join(f"`{name}`" for name in BY_NAME[table].partitions)

    assert f"Folders: {folders}." in SECTIONS[table]


def test_exactly_the_existing_tables_and_views_are_on_the_page() -> None:
    titles = set(SECTIONS) - {"", "The tables", "Views", SHARED}

    assert titles == set(BY_NAME)
    assert [name for name in rows(SECTIONS["Views"]) if name.startswith("v_")] == list(VIEWS)
