"""The geometry of plots, with figures worked out by hand."""

from __future__ import annotations

import math

import pytest

from odradek_console.web.plots import (
    HEIGHT,
    LEFT,
    MOST_LINES,
    TOP,
    WIDTH,
    Level,
    Line,
    Plot,
    Points,
    plot,
    time_ticks,
    value_ticks,
    with_gaps,
)
from odradek_console.web.render import TEMPLATES

MINUTE = 60_000
NOON = 1_764_072_000_000  # 2025-11-25 12:00:00 UTC
BOTTOM = HEIGHT - 24
RIGHT = WIDTH - 12


def drawn(*lines: Points, levels: tuple[Level, ...] = (), minutes: int = 10) -> Plot:
    named = [Line(name=f"line {number}", points=points) for number, points in enumerate(lines)]
    return plot("p", "Plot", "ms", named, NOON, NOON + minutes * MINUTE, levels)


def minutes(*values: float) -> Points:
    """Values at full minutes from the left end on."""
    return [(NOON + number * MINUTE, value) for number, value in enumerate(values)]


def html(found: Plot) -> str:
    module = TEMPLATES.get_template("plot.html").module
    return str(module.show(found))  # type: ignore[attr-defined]


def test_a_line_goes_through_its_points() -> None:
    # The axis is 0 to 100. The width between the margins is 342, the height 156.
    (line,) = drawn([(NOON, 0.0), (NOON + 5 * MINUTE, 50.0), (NOON + 10 * MINUTE, 100.0)]).lines

    assert line.path == f"M{LEFT} {BOTTOM}L{LEFT + 171} {BOTTOM - 78}L{RIGHT} {TOP}"
    assert (line.kind, line.latest, line.dots) == ("s1", "100", ())
    assert line.values == "0 50 100"
    assert line.times == f"{NOON // 1000} {NOON // 1000 + 300} {NOON // 1000 + 600}"


def test_marks_of_the_axes() -> None:
    found = drawn(minutes(0.0, 87.0))

    assert [(each.at, each.text) for each in found.value_ticks] == [(166, "0"), (88, "50"), (10, "100")]
    assert [each.text for each in found.time_ticks] == ["12:00", "12:02", "12:04", "12:06", "12:08", "12:10"]
    assert [each.at for each in found.time_ticks] == [46, 114.4, 182.8, 251.2, 319.6, 388]


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([], [0, 0.5, 1]),
        ([0.0], [0, 0.5, 1]),
        ([7.0], [0, 2, 4, 6, 8]),
        ([100.0], [0, 50, 100]),
        ([4.0], [0, 1, 2, 3, 4]),
        ([0.3], [0, 0.1, 0.2, 0.3]),
        ([-5.0, 5.0], [-5, 0, 5]),
        ([-3.0], [-3, -2, -1, 0]),
        ([1200.0], [0, 500, 1000, 1500]),
    ],
)
def test_marks_of_the_value_axis(values: list[float], ticks: list[float]) -> None:
    assert value_ticks(values) == pytest.approx(ticks)


@pytest.mark.parametrize("value", [5e-324, 1e-299, 1e-7, 1e299, -1e299])
def test_extreme_values_have_an_axis(value: float) -> None:
    found = drawn(minutes(value, value))

    assert 2 <= len(found.value_ticks) <= 7
    assert "nan" not in html(found)
    assert "inf" not in html(found)


@pytest.mark.parametrize(
    ("span_ms", "texts"),
    [
        (5_000, ["12:00:00", "12:00:01", "12:00:02", "12:00:03", "12:00:04", "12:00:05"]),
        (15 * MINUTE, ["12:00", "12:05", "12:10", "12:15"]),
        (12 * 60 * MINUTE, ["12:00", "15:00", "18:00", "21:00", "Nov 26"]),
        (3 * 1440 * MINUTE, ["Nov 26", "Nov 27", "Nov 28"]),
    ],
)
def test_marks_of_the_time_axis(span_ms: int, texts: list[str]) -> None:
    found = [text for _, text in time_ticks(NOON, NOON + span_ms)]

    assert found == texts


def test_a_value_that_is_no_number_is_a_gap() -> None:
    (line,) = drawn(minutes(1.0, 1.0, math.nan, 1.0, 1.0, math.inf, 1.0)).lines

    assert line.path.count("M") == 2
    assert len(line.dots) == 1  # the last one has no neighbor
    assert line.values == "1 1 1 1 1"


def test_points_too_far_apart_have_a_gap() -> None:
    found = with_gaps([*minutes(1.0, 2.0), (NOON + 5 * MINUTE, 3.0), (NOON + 6 * MINUTE, 4.0)], usual_ms)

    assert [value for _, value in found if value == value] == [1.0, 2.0, 3.0, 4.0]
    assert math.isnan(found[2][1])
    assert drawn(found).lines[0].path.count("M") == 2


def test_another_push_interval_is_no_gap() -> None:
    seldom = [(NOON + number * 5 * MINUTE, 1.0) for number in range(3)]
    often = [(NOON + 10 * MINUTE + number * 5_000, 1.0) for number in range(1, 4)]

    assert with_gaps([*seldom, *often], lambda time_ms: 5_000) == [*seldom, *often]
    assert with_gaps([], usual_ms) == []


def usual_ms(time_ms: int) -> int:
    return MINUTE


def test_one_point_is_a_dot() -> None:
    (line,) = drawn([(NOON + 5 * MINUTE, 4.0)]).lines

    assert (line.path, line.dots) == ("", ((217.0, TOP),))


def test_no_points() -> None:
    found = drawn([])

    assert (found.lines[0].path, found.lines[0].latest, found.rows) == ("", "-", ())
    assert "line 0: no values." in found.description
    assert drawn().lines == ()


def test_a_constant_is_a_horizontal_line() -> None:
    (line,) = drawn(minutes(5.0, 5.0, 5.0)).lines

    heights = {part.split(" ")[1] for part in line.path[1:].split("L")}
    # The axis is 0 to 6 by 2.
    assert heights == {f"{BOTTOM - 156 * 5 / 6:g}"}


def test_points_outside_the_window_are_not_drawn() -> None:
    (line,) = drawn([(NOON - 1, 900.0), (NOON, 1.0), (NOON + 11 * MINUTE, 900.0)]).lines

    assert line.values == "1"


def test_many_points_are_thinned_and_keep_their_extremes() -> None:
    points = [(NOON + number * 60, float(number % 100)) for number in range(10_000)]
    points[5_000] = points[5_000][0], 12_345.0

    found = drawn(points)

    (line,) = found.lines
    assert line.path.count("L") < 2 * WIDTH
    assert "12.3k" in line.values
    assert found.value_ticks[-1].text == "15k"
    assert len(html(found)) < 40_000


def test_lines_beyond_the_sixth_are_left_out() -> None:
    found = drawn(*[minutes(1.0)] * 9)

    assert (len(found.lines), found.left_out) == (MOST_LINES, 3)
    assert "3 further series" in html(found)


def test_a_level_widens_the_axis_and_has_a_legend() -> None:
    found = drawn(minutes(1.0, 2.0), levels=(Level(name="threshold", value=5.0, kind="threshold"),))

    (level,) = found.levels
    assert level.y == round(BOTTOM - 156 * 5 / 6, 1)
    assert 'class="level threshold"' in html(found)
    assert drawn(levels=(Level(name="none", value=math.nan, kind="peers"),)).levels == ()


def test_the_table_has_the_latest_values_of_all_lines() -> None:
    found = drawn(minutes(1.0, 2.0), minutes(10.0, math.nan, 30.0))

    assert found.rows == (("12:02:00", ("-", "30")), ("12:01:00", ("2", "-")), ("12:00:00", ("1", "10")))


def test_names_of_clients_are_escaped() -> None:
    text = html(plot("p", "<b>", "", [Line(name='"><script>', points=minutes(1.0))], NOON, NOON + MINUTE))

    assert "<script>" not in text
    assert "<b>" not in text
    assert "style=" not in text
