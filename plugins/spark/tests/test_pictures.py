"""Pictures, read as matplotlib's objects: pages, panels, labels, units, thresholds."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from odradek.findings.client_metrics import PREFIX
from odradek.findings.concerns import CONCERNS
from odradek.findings.troubles import BY_ID, SILENCE, TROUBLES
from odradek_spark.query.axes import SECOND_LINE
from odradek_spark.query.behind import anomalies_page, metrics_behind
from odradek_spark.query.chart import Bars, Line, Page, Panel, Span, SpanPanel
from odradek_spark.query.concerns import ORDER
from odradek_spark.query.figures import draw, figure_of
from odradek_spark.query.line_panel import LABEL_GAP, MAX_LINES, spread
from odradek_spark.query.pages import client_pages, clients_page, throttle_page, top_page
from odradek_spark.query.series import lines_of

START = datetime(2026, 9, 22, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PRODUCE = "producer.produce.throttle.time"
LATENCY = "producer.node.request.latency"
DELTA = 1


@pytest.fixture
def in_berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of this computer shows the time of Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def at(minute: float) -> datetime:
    return START + minute * MINUTE


def points(
    name: str, *values: float, client: str = "orders", attrs: str = "{}", **more: Any
) -> list[dict[str, Any]]:
    """Rows of `questions.series`: a point each minute."""
    row = {
        "client_id": client,
        "client_instance_id": client * 3,
        "name": name if "." not in name or name == SILENCE else PREFIX + name,
        "attrs": attrs,
        "unit": "",
        "temporality": 0,
        "start_ts": None,
    }
    return [row | {"ts": at(minute), "number": value} | more for minute, value in enumerate(values)]


def episode(rule: str, name: str, start: float, end: float, **more: Any) -> dict[str, Any]:
    """A row of `questions.anomalies`."""
    return {
        "rule": rule,
        "client_id": "orders",
        "client_instance_id": "orders" * 3,
        "name": name,
        "attrs": None,
        "op": ">",
        "threshold": BY_ID[rule].threshold if rule in BY_ID else 7.0,
        "worst": 8.0,
        "started_ts": at(start),
        "last_ts": at(end),
        "closed_ts": at(end),
        "state": "closed",
        "reason": "recovered",
    } | more


def drawn(page: Page) -> Figure:
    figure, _ = figure_of(page)
    return figure


def texts(axis: Axes) -> list[str]:
    """The texts in and beside a panel."""
    return [text.get_text() for text in axis.texts if text.get_text() and text.get_gid() != SECOND_LINE]


def named(axis: Axes, label: str) -> Line2D:
    return next(line for line in axis.lines if line.get_label() == label)


def heights(line: Line2D) -> list[float]:
    """The values of a line, in the unit of its axis."""
    return [float(value) for value in np.asarray(line.get_ydata())]


def beside(axis: Axes) -> str:
    """The text beside or below the title of a panel."""
    below = [text.get_text() for text in axis.texts if text.get_gid() == SECOND_LINE]
    return axis.get_title(loc="right") or "".join(below)


def sizes(lines: Mapping[str, Line]) -> dict[str, int]:
    return {label: len(line.values) for label, line in lines.items()}


def test_every_metric_of_a_trouble_belongs_to_a_concern() -> None:
    metrics = {metric for trouble in TROUBLES for metric in trouble.metrics.values()} - {SILENCE}

    assert metrics <= set(ORDER)


def test_a_client_has_a_page_for_each_concern_that_it_reports() -> None:
    rows = (
        points(f"{LATENCY}.max", 1.0)
        + points(f"{PRODUCE}.avg", 0.0)
        + points("producer.record.size.avg", 1.0)
    )

    pages = client_pages(rows, "orders", "java 4.1.0")

    assert [(page.id, page.title, len(page.panels)) for page in pages] == [
        ("requests", "orders: Requests to brokers", 1),
        ("throttling", "orders: Throttling by quotas", 1),
    ]


def test_a_client_without_points_has_a_page_that_says_so() -> None:
    (page,) = client_pages([], "orders", "")

    assert texts(drawn(page).axes[0]) == ["no points in this time range"]


def test_every_page_is_a_file_and_a_pdf_has_all(tmp_path: Path) -> None:
    rows = points(f"{LATENCY}.max", 1.0) + points(f"{PRODUCE}.avg", 0.0)
    pages = client_pages(rows, "orders", "")

    pictures = draw(pages, tmp_path / "a.png").files
    document = draw(pages, tmp_path / "a.pdf").files

    assert [file.name for file in pictures] == ["a.png", "a-throttling.png"]
    assert [file.name for file in document] == ["a.pdf"]
    assert (tmp_path / "a.pdf").read_bytes().count(b"/Type /Page ") == 2


def test_avg_and_max_are_two_lines_of_one_color() -> None:
    rows = points(f"{PRODUCE}.avg", 10.0, 20.0) + points(f"{PRODUCE}.max", 30.0, 40.0)

    (axis,) = drawn(throttle_page(rows, 1.0)).axes
    maximum, mean = (named(axis, label) for label in ("orders max", "orders avg"))

    assert texts(axis) == ["orders avg", "orders max", "orders"]  # the last is the subtitle
    assert maximum.get_color() == mean.get_color()
    assert (maximum.get_linestyle(), mean.get_linestyle()) == ("-", "--")
    assert [heights(line) for line in (maximum, mean)] == [[30.0, 40.0], [10.0, 20.0]]


def test_an_axis_has_a_unit_for_people_and_names_the_local_time(in_berlin: None) -> None:
    (page,) = client_pages(points(f"{LATENCY}.max", 4.0, 6_200.0), "orders", "")

    (axis,) = drawn(page).axes

    assert axis.get_ylabel() == "s"
    assert axis.get_xlabel() == "2026-09-22, local time: CEST (UTC+02:00)"


def test_thousands_have_commas() -> None:
    (axis,) = drawn(Page("a", "a", [Panel("lag", "", [Line("", [at(0), at(1)], [0.0, 82_833.0])])])).axes

    assert axis.yaxis.get_major_formatter()(80_000, 0) == "80,000"


def test_a_near_threshold_is_a_line_and_a_far_one_is_said() -> None:
    near, far = (
        drawn(client_pages(points(f"{LATENCY}.max", *values), "orders", "")[0]).axes[0]
        for values in ((4.0, 7_000.0), (4.0, 70.0))
    )

    said = "alarm slow-produce-requests: above 5 s for 3 min"
    assert said in texts(near)
    assert [heights(line)[0] for line in near.lines if line.get_linestyle() == ":"] == [5.0]
    assert beside(far) == said
    assert [line for line in far.lines if line.get_linestyle() == ":"] == []


def test_an_anomaly_of_a_client_is_shaded_and_named() -> None:
    name = f"{PREFIX}{LATENCY}.max"
    ill = episode("slow-produce-requests", name, 1, 2)

    (page,) = client_pages(points(f"{LATENCY}.max", 4.0, 7_000.0, 7_000.0), "orders", "", [ill], at(2))

    (axis,) = drawn(page).axes
    assert len(axis.patches) == 1
    assert "anomaly: slow-produce-requests" in texts(axis)


def test_a_label_tells_only_what_differs() -> None:
    rows = [
        row
        for node in ("node-1", "node--1", "node-2147483645")
        for row in points(f"{LATENCY}.max", 1.0, attrs=f'{{"node_id": "{node}", "same": "x"}}')
    ]

    _, lines = lines_of(rows)

    assert [line.label for line in lines] == ["node 1", "bootstrap", "coordinator 2"]


def test_a_sum_is_drawn_as_its_increase_per_minute() -> None:
    deltas = points("producer.record.retry.total", 5.0, 6.0, temporality=DELTA, start_ts=at(-0.5))
    cumulative = points("producer.record.retry.total", 5.0, 11.0, 2.0, temporality=2)

    unit, (increase,) = lines_of(deltas)
    _, (restarted,) = lines_of(cumulative)

    assert (unit, increase.values) == ("per min", [10.0, 6.0])
    assert restarted.values == [6.0, 2.0]


def test_a_line_breaks_where_the_client_was_silent() -> None:
    line = Line("a", [at(minute) for minute in (0, 1, 2, 3, 20, 21)], [1.0] * 6)

    (axis,) = drawn(Page("a", "a", [Panel("a", "", [line])])).axes

    assert [math.isfinite(value) for value in heights(named(axis, "a"))] == [True] * 4 + [False] + [True] * 2


def test_the_largest_lines_are_drawn_and_means_are_left_out_first() -> None:
    lines = [Line(f"{n} max", [at(0)], [float(n)]) for n in range(MAX_LINES)]
    means = [Line(f"{n} avg", [at(0)], [99.0], is_secondary=True) for n in range(MAX_LINES)]

    figure, left_out = figure_of(Page("a", "a", [Panel("a", "", [*means, *lines])]))

    assert sorted(texts(figure.axes[0])) == [f"{n} max" for n in range(MAX_LINES)]
    assert left_out == ["a: 6 more lines are not drawn; drawn are those with the largest values"]


@pytest.mark.parametrize("places", [[0.0] * 5, [1.0, 1.0, 0.99], [0.5, 0.2, 0.52]], ids=str)
def test_labels_do_not_overlap(places: list[float]) -> None:
    found = spread(places)

    ordered = sorted(found)
    assert all(later - earlier > LABEL_GAP - 1e-9 for earlier, later in pairwise(ordered))
    assert sorted(range(len(places)), key=lambda index: (places[index], index)) == sorted(
        range(len(found)), key=lambda index: found[index]
    )


def test_a_panel_that_is_always_zero_says_so() -> None:
    (axis,) = drawn(Page("a", "a", [Panel("a", "", [Line("", [at(0), at(1)], [0.0, 0.0])])])).axes

    assert texts(axis) == ["always 0"]


def test_anomalies_are_a_timeline_with_the_metric_behind_each_rule() -> None:
    name = f"{PREFIX}{LATENCY}.max"
    slow = episode("slow-produce-requests", name, 1, 3)
    silent = episode("silent", SILENCE, 5, 5, state="open", closed_ts=None)
    pushes = [
        {"client_id": "orders", "client_instance_id": "orders" * 3, "minute": at(n), "pushes": 2}
        for n in range(5)
    ]

    page = anomalies_page([slow, silent], points(f"{LATENCY}.max", 1.0, 7e3, 7e3, 7e3, 1.0), pushes, at(9))

    figure = drawn(page)
    timeline, first, second = figure.axes
    assert page.title == "Anomalies: 2, 1 open"
    assert [label.get_text() for label in timeline.get_yticklabels()] == [
        "slow-produce-requests  orders",
        "silent  orders",
    ]
    assert first.get_title(loc="left") == "silent: pushes received"
    assert beside(first) == "threshold: above 3 push intervals for 30 s"
    assert second.get_title(loc="left") == f"slow-produce-requests: {LATENCY}.max"
    assert "threshold: above 5 s for 3 min" in texts(second)
    assert [line.get_marker() for line in timeline.lines].count(">") == 1


def test_the_metric_behind_an_anomaly_is_what_its_rule_compares() -> None:
    retried, sent = "producer.record.retry.total", "producer.record.send.total"
    found = episode("retries", PREFIX + retried, 1, 3)
    rows = points(retried, 0.0, 5.0, 5.0, temporality=DELTA) + points(
        sent, 50.0, 50.0, 50.0, temporality=DELTA
    )

    page = anomalies_page([found], rows, [], at(3))

    assert metrics_behind([found]) == [PREFIX + retried, PREFIX + sent]
    panel = page.panels[1]
    assert isinstance(panel, Panel)
    assert [round(value, 3) for value in panel.lines[0].values] == [0.0, 0.05, 0.067]
    assert drawn(page).axes[1].get_ylabel() == "% of the records sent"


def test_an_increase_is_summed_over_the_window_of_its_rule() -> None:
    name = "consumer.coordinator.rebalance.total"
    found = episode("rebalance-storm", PREFIX + name, 1, 3)
    values = [1.0] * 15

    page = anomalies_page([found], points(name, *values, temporality=DELTA), [], at(15))

    panel = page.panels[1]
    assert isinstance(panel, Panel)
    assert list(panel.lines[0].values) == [*map(float, range(1, 11)), *[10.0] * 5]


def test_a_rule_of_the_user_is_drawn_with_its_own_threshold() -> None:
    found = episode("mine", f"{PREFIX}{LATENCY}.max", 1, 2)

    page = anomalies_page([found], points(f"{LATENCY}.max", 1.0, 8.0, 9.0), [], at(2))

    assert "threshold: above 7 ms" in texts(drawn(page).axes[1])


def test_no_anomalies_are_said() -> None:
    assert texts(drawn(anomalies_page([], [], [], at(0))).axes[0]) == ["no anomalies in this time range"]


def test_clients_are_counted_by_library_and_shown_one_by_one() -> None:
    row = {"client_id": "a", "software": "java 4.1.0", "push_interval_ms": 30_000, "terminated": False}
    rows = [
        row | {"client_instance_id": "first", "first_seen": at(0), "last_seen": at(10)},
        row | {"client_instance_id": "gone", "first_seen": at(0), "last_seen": at(5)},
    ]
    counts = [{"software": "java 4.1.0", "bucket": at(n), "instances": 2} for n in range(3)]

    page = clients_page(rows, counts)

    fleet, each = page.panels
    assert page.title == "Client instances: 2, of which 1 still pushed at the end"
    assert isinstance(fleet, Panel)
    assert sizes({line.label: line for line in fleet.lines}) == {"java 4.1.0": 3}
    assert isinstance(each, SpanPanel)
    assert [(span.label, span.is_open) for span in each.spans] == [
        ("a first  java 4.1.0", True),
        ("a gone  java 4.1.0", False),
    ]


def test_of_a_fleet_the_clients_that_changed_last_are_drawn() -> None:
    row = {"software": "java", "push_interval_ms": 30_000, "terminated": False, "client_instance_id": "i"}
    rows = [
        row | {"client_id": f"{n}", "first_seen": at(0), "last_seen": at(n if n % 2 else 500)}
        for n in range(200)
    ]

    page = clients_page(rows, [])

    panel = page.panels[1]
    assert isinstance(panel, SpanPanel)
    assert panel.title == "the 40 that started or stopped last; an arrow marks those that still push"
    assert {span.label for span in panel.spans} == {f"{n} i  java" for n in range(121, 200, 2)}
    assert page.title == "Client instances: 200, of which 100 still pushed at the end"


def test_long_names_leave_room_for_the_lines() -> None:
    rows = [row for n in range(9) for row in points(f"{PRODUCE}.max", 9.0, 9.0, client=f"{'x' * 200}-{n}")]
    figure = drawn(throttle_page(rows, 1.0))
    figure.canvas.draw()

    (axis,) = figure.axes
    assert axis.get_position().width > 0.6
    labels = {text for text in texts(axis) if text.startswith("xx") and "more" not in text}
    assert len(labels) == MAX_LINES


def test_bars_have_values_with_units_and_the_threshold() -> None:
    metric = f"{LATENCY}.max"
    rows = pa.table({"client_id": ["a", "b"], "value": [7_790.0, 27.0], "unit": ["", ""]})

    page = top_page(rows, metric, "client_id", "max")

    (axis,) = drawn(page).axes
    assert page.title == f"largest {metric} by client_id"
    assert texts(axis) == ["7.79 s", "27 ms", "alarm slow-produce-requests: above 5 s for 3 min"]
    assert axis.get_xlabel() == "s"


def test_an_empty_panel_of_spans_and_bars_says_so() -> None:
    figure = drawn(Page("a", "a", [SpanPanel("when", ()), Bars("bars", "", ()), Panel("p", "", ())]))

    assert [texts(axis) for axis in figure.axes] == [["none"], ["no rows"], ["no points"]]


def test_ticks_of_time_do_not_overlap() -> None:
    days = [START + timedelta(hours=6 * n) for n in range(28)]
    panel = SpanPanel("when", [Span("a", days[0], days[-1])])
    figure = drawn(Page("a", "a", [Panel("a", "", [Line("", days, [1.0] * 28)]), panel]))
    figure.canvas.draw()

    boxes = [label.get_window_extent() for label in figure.axes[-1].get_xticklabels() if label.get_text()]

    assert len(boxes) > 3
    assert not any(one.overlaps(other) for one, other in pairwise(boxes))


def test_concerns_have_ids_for_file_names() -> None:
    ids = [concern.id for concern in CONCERNS]

    assert len(set(ids)) == len(ids)
    assert all(each.isalpha() for each in ids)
