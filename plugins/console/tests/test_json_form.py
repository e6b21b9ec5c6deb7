"""The JSON of rows, and its schema."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pytest

from odradek_console.json_form import JsonRow, form
from support.json_schema import misfits


class Size(StrEnum):
    SMALL = "small"
    LARGE = "large"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(JsonRow):
    name: str
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Whole(JsonRow):
    row: Part
    size: Size
    parts: tuple[Part, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    points: tuple[tuple[int, float], ...] = ()
    by_name: dict[str, Part]
    count: int | None = None
    is_open: bool = False


EMPTY = Whole(row=Part(name="a", share=0.5), size=Size.SMALL, by_name={})
FULL = Whole(
    row=Part(name="b", share=float("nan")),
    size=Size.LARGE,
    parts=(Part(name="c", share=1.0),),
    labels=(("key", "value"),),
    points=((1, 2.0), (2, float("inf"))),
    by_name={"x": Part(name="d", share=0.0)},
    count=3,
    is_open=True,
)


def test_rows_as_json() -> None:
    assert EMPTY.to_json() == {
        "name": "a",
        "share": 0.5,
        "size": "small",
        "parts": [],
        "labels": {},
        "points": [],
        "by_name": {},
        "count": None,
        "is_open": False,
    }
    assert FULL.to_json() == {
        "name": "b",
        "share": None,
        "size": "large",
        "parts": [{"name": "c", "share": 1.0}],
        "labels": {"key": "value"},
        "points": [[1, 2.0], [2, None]],
        "by_name": {"x": {"name": "d", "share": 0.0}},
        "count": 3,
        "is_open": True,
    }


@pytest.mark.parametrize("row", [EMPTY, FULL], ids=["empty", "full"])
def test_the_json_fits_its_schema(row: Whole) -> None:
    assert misfits(row.to_json(), form(Whole).schema) == []


@pytest.mark.parametrize(
    "change", [{"size": "huge"}, {"labels": [["key", "value"]]}, {"points": [[1]]}, {"count": "3"}]
)
def test_the_schema_refuses_other_json(change: dict[str, object]) -> None:
    assert misfits(FULL.to_json() | change, form(Whole).schema)


def test_a_type_without_a_rule() -> None:
    with pytest.raises(TypeError, match="no JSON for"):
        form(object)
