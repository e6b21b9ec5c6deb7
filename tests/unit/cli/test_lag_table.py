"""The table of ``odradek lag``."""

from __future__ import annotations

import pytest

from odradek.cli.lag_table import Movements, Row, duration, objects, table
from odradek.lag.group_lag import GroupLag, Owner, PartitionLag, TopicLag
from odradek.lag.standing import Standing


def group(name: str, lag: int, time_ms: int | None = 0, offset: int = 0) -> GroupLag:
    read = [PartitionLag(0, offset, Standing(offset, lag, 0, 0, 0), time_ms)]
    return GroupLag(
        group=name, type="classic", state="Empty", members=0, topics={"t": TopicLag(partitions=read)}
    )


def rows(*groups: GroupLag) -> list[Row]:
    return Movements().rows(groups, 0)


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "0s"),
        (59_999, "59s"),
        (60_000, "1m 0s"),
        (3_599_000, "59m 59s"),
        (7_501_000, "2h 5m"),
        (90_000_000, "1d 1h"),
        (86_400_000 * 400, "400d 0h"),
    ],
)
def test_a_time_in_its_two_largest_units(time_ms: int, text: str) -> None:
    assert duration(time_ms) == text


def test_the_worst_first_by_time_then_by_records() -> None:
    found = rows(
        group("read", 0), group("old", 1, 9_000), group("many", 500, None), group("young", 90, 1_000)
    )

    assert [row.group.group for row in found] == ["old", "young", "many", "read"]


def test_progress_comes_with_the_second_round_and_ends_with_the_group() -> None:
    movements = Movements()
    assert movements.rows([group("g", 10)], 0)[0].progress == "-"
    assert movements.rows([group("g", 4, offset=6)], 1_000)[0].progress == "catching up"
    movements.rows([], 2_000)
    assert movements.rows([group("g", 4, offset=6)], 3_000)[0].progress == "-"


def test_members_without_an_offset() -> None:
    topics = {"t": TopicLag(uncommitted=3, assigned=3)}
    (row,) = rows(GroupLag(group="g", type="consumer", state="Stable", members=1, topics=topics))

    (_, line) = table([row])
    assert line.split() == ["g", "t", "-", "-", "no", "offset"]
    (shown,) = objects([row])
    assert (shown["lag"], shown["lag_seconds"], shown["uncommitted"]) == (None, None, 3)


@pytest.mark.parametrize("width", [20, 80, 132])
def test_lines_are_within_the_width_and_not_below_eighty_columns(width: int) -> None:
    lines = list(table(rows(group("g" * 200, 12_345_678_901_234, 86_400_000 * 4_000)), width))

    assert {len(line) for line in lines} <= set(range(max(width, 80) + 1))
    assert "12345678901234"[:12] in lines[1]


def test_rows_that_do_not_fit_are_counted() -> None:
    lines = list(table(rows(*(group(f"g{number}", number) for number in range(10))), most=5))

    assert len(lines) == 5
    assert lines[-1] == "and 7 more"
    assert len(list(table(rows(group("g", 1)), most=2))) == 2


def test_a_line_for_each_client_of_a_group() -> None:
    lags = {0: 3, 1: 5, 2: 7}
    read = [PartitionLag(at, 0, Standing(0, lag, 0, 0, 0), 1_000 * lag) for at, lag in lags.items()]
    owners = {
        0: Owner("m1", "app", "10.0.0.1"),
        1: Owner("m2", "app", "10.0.0.1"),
        3: Owner("m3", "late", "10.0.0.2"),
    }
    topic = TopicLag(partitions=read, owners=owners, uncommitted=1, assigned=3)
    groups = [GroupLag(group="g", type="classic", state="Stable", members=3, topics={"t": topic})]
    movements = Movements(by_client=True)
    found = movements.rows(groups, 0)

    assert [line.split()[:3] for line in table(found)] == [
        ["CLIENT", "TOPIC", "LAG"],
        ["nobody", "of", "g"],
        ["app@10.0.0.1", "t", "8"],
        ["late@10.0.0.2", "t", "-"],
    ]
    shown = [
        (each["client_id"], each["address"], each["lag"], each["uncommitted"]) for each in objects(found)
    ]
    assert shown == [("", "", 7, 0), ("app", "10.0.0.1", 8, 0), ("late", "10.0.0.2", None, 1)]
    assert movements.rows(groups, 1_000)[1].movement is found[1].movement
