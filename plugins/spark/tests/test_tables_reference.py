"""``reference/tables.md`` has every table with its folders and columns, in their order, and every view."""

from __future__ import annotations

import pytest

from odradek_tables.query.views import VIEWS
from odradek_tables.schemas import BY_NAME
from support.reference_page import rows, sections

SECTIONS = sections("reference/tables.md")


@pytest.mark.parametrize("table", BY_NAME)
def test_a_table_has_each_of_its_columns_with_its_type(table: str) -> None:
    written = {name: cells[1].strip("`") for name, cells in rows(SECTIONS[table]).items() if name != "column"}

    assert list(written.items()) == [(each.name, str(each.type)) for each in BY_NAME[table].schema]


@pytest.mark.parametrize("table", BY_NAME)
def test_a_table_names_its_partition_columns(table: str) -> None:
    folders = ", ".join(f"`{name}`" for name in BY_NAME[table].partitions)

    assert f"Folders: {folders}." in SECTIONS[table]


def test_exactly_the_existing_tables_and_views_are_on_the_page() -> None:
    titles = set(SECTIONS) - {"", "The tables", "Views"}

    assert titles == set(BY_NAME)
    assert [name for name in rows(SECTIONS["Views"]) if name.startswith("v_")] == list(VIEWS)
