"""The notebook in ``examples`` runs from the first to the last cell, and shows what it says."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest
from spark_dataset import Push, ingested

NOTEBOOK = Path(__file__).parents[3] / "examples" / "12_tables_in_a_notebook.ipynb"


def cells() -> list[str]:
    """The code of each cell."""
    found = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (found["nbformat"], found["nbformat_minor"]) == (4, 5)
    assert all(each.get("outputs", []) == [] for each in found["cells"])
    return ["".join(each["source"]) for each in found["cells"] if each["cell_type"] == "code"]


def shown(code: str, names: dict[str, Any]) -> Any:
    """Run a cell; return what a notebook shows below it: the value of an expression at its end."""
    lines = ast.parse(code).body
    last = lines.pop() if isinstance(lines[-1], ast.Expr) else None
    exec(compile(ast.Module(lines, []), str(NOTEBOOK), "exec"), names)
    return eval(ast.unparse(last), names) if last is not None else None


def test_the_notebook_answers_from_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pushes = [Push(client=each % 3, value=float(each), at_s=30.0 * each) for each in range(12)]
    ingested(str(tmp_path / "tables"), pushes)
    monkeypatch.setenv("ODRADEK_DATASET", str(tmp_path / "tables"))
    names: dict[str, Any] = {}

    nothing, clients, top, of_client, own, rows = [shown(each, names) for each in cells()]

    assert nothing is None
    assert list(clients["client_id"]) == ["client-0", "client-1", "client-2"]
    assert list(top["value"]) == [11.0, 10.0, 9.0]
    assert list(of_client.iloc[:, 0]) == [2.0, 5.0, 8.0, 11.0]
    assert names["worst"] == "client-2"
    assert list(own["points"]) == [4, 4, 4]
    assert list(rows.columns) == ["ts", "name", "value"]
    assert list(rows["value"]) == [2.0, 5.0, 8.0, 11.0]
