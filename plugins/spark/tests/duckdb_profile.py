"""The rows that pass through the operators of a DuckDB query."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from odradek_tables.query.reader import Reader


def rows_into(reader: Reader, query: str, operator: str, values: Sequence[object] = ()) -> int:
    """The number of rows that the operators of a kind (``WINDOW``, ``TABLE_SCAN``) get from the one below.

    A scan has none below: its own rows count.
    """
    answered = reader.connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", list(values)).fetchall()
    plan = json.loads(answered[0][1])
    found = [each for each in operators(plan["operator"]) if operator in each["type"]]
    return sum(below["intermediate_rows"] for each in found for below in (each.get("children") or [each]))


def operators(found: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for each in found:
        yield each
        yield from operators(each.get("children", []))
