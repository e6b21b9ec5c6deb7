"""The declaration of metrics, and their rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from odradek.metrics import metric
from odradek.metrics.metric import Metric, MetricRow, Metrics, declare
from odradek.wire.error_code import ErrorCode


@dataclass
class Inner:
    waiting: list[int] = field(default_factory=list)


@dataclass
class Room:
    """Something that counts."""

    bad_starts: int = 0
    age: float | None = None
    inner: Inner = field(default_factory=Inner)
    lost: Counter[tuple[ErrorCode, str]] = field(default_factory=Counter)


@pytest.fixture(autouse=True)
def declared(monkeypatch: pytest.MonkeyPatch) -> dict[str, Metric]:
    """What a test declares, alone."""
    found: dict[str, Metric] = {}
    monkeypatch.setattr(metric, "DECLARED", found)
    return found


def rooms() -> Metrics[Room, int]:
    made = Metrics[Room, int]("room", "name")
    made.gauge("", "{item}", "Items that wait", "inner.waiting")
    made.counter("bad.starts", "{start}", "Starts that failed")
    made.gauge("age", "s", "Age, if there is one")
    made.gauge("doubled", "1", "A given number, doubled", lambda _, number: 2 * number)
    made.counter("lost", "{push}", "Lost pushes", by="error reason")
    return made


def test_a_declaration_has_all_that_is_known_of_a_metric(declared: dict[str, Metric]) -> None:
    rooms()

    assert list(declared) == ["room", "room.bad.starts", "room.age", "room.doubled", "room.lost"]
    lost = Metric("room.lost", "counter", "{push}", "Lost pushes", ("name", "error", "reason"))
    assert declared["room.lost"] == lost


def test_rows_are_attributes_sizes_and_results_and_have_all_labels() -> None:
    room = Room(3, None, Inner([1, 2]), Counter({(ErrorCode.INVALID_REQUEST, "off"): 4}))

    assert list(rooms().rows(room, 21, name="a")) == [
        MetricRow("room", {"name": "a"}, 2),
        MetricRow("room.bad.starts", {"name": "a"}, 3),
        MetricRow("room.doubled", {"name": "a"}, 42),
        MetricRow("room.lost", {"name": "a", "error": "INVALID_REQUEST", "reason": "off"}, 4),
    ]


def test_labels_that_are_not_declared_or_missing_are_bugs() -> None:
    with pytest.raises(AssertionError, match="room has the labels name"):
        list(rooms().rows(Room(), 1, other="a"))
    with pytest.raises(AssertionError, match="one has no labels other"):
        declare("gauge", "one", "1", "One", "name").row(1, other="a")


def test_a_value_is_a_number_also_if_it_is_true_or_false() -> None:
    """OTLP refuses a whole push for a boolean."""
    active = declare("gauge", "active", "1", "1 if active")
    group = Metrics[bool]("group")
    group.gauge("open", "1", "1 if open", lambda is_open: is_open)

    values = [active.row(True).value, *(row.value for row in group.rows(False))]
    assert [(type(each), each) for each in values] == [(int, 1), (int, 0)]


def test_a_metric_is_declared_once() -> None:
    rooms()

    with pytest.raises(AssertionError, match="room is declared twice"):
        rooms()
