"""What is found of one client, without Spark: its steps, samples, islands, and what it shares with others."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from odradek.findings.troubles import BY_ID, SILENCE, THROTTLED
from odradek_spark.jobs.causes import Key, with_causes
from odradek_spark.jobs.client import KNOWN, LAST, POINT, Judge
from odradek_spark.jobs.life import CLIENT, CUMULATIVE, GAUGE, INSTANCE, MUTED_MS, OF_POINT, Life
from odradek_spark.jobs.rules import Aggregate, Op, Rule, default_rules
from odradek_spark.jobs.series import increase, series_of

SECOND = 1_000_000
INTERVAL_MS = 30_000
SLOW = Rule(id="slow", metric="latency", op=Op.ABOVE, threshold=100.0, clear=50.0, for_s=60.0)
DAY = datetime(2026, 9, 22, tzinfo=UTC)


def point(at_s: float, value: float | None, name: str = "latency", **more: Any) -> dict[str, Any]:
    """A gauge of a push at a second; ``more`` has other columns."""
    at = round(at_s * SECOND)
    row = dict.fromkeys((*OF_POINT, "gateway")) | {
        "ts": at,
        "client_ts": at,
        "recv_ts": at,
        "first_ts": 0,
        "src_partition": 0,
        "src_offset": at,
        "push_interval_ms": INTERVAL_MS,
        "terminating": False,
        "name": name,
        "attrs": "{}",
        "value": value,
        "kind": GAUGE,
        "temporality": 0,
    }
    return row | more


def life(points: Sequence[dict[str, Any]]) -> Life:
    return Life({name: [each[name] for each in points] for name in OF_POINT})


def found(
    points: Sequence[dict[str, Any]],
    *rules: Rule,
    now_s: float = 0,
    known: Sequence[dict[str, Any]] = (),
    last: Sequence[dict[str, Any]] = (),
) -> list[dict[str, Any]]:
    """The episodes of a client, from the columns that Spark brings together."""
    rows = [(POINT, each) for each in points] + [(KNOWN, each) for each in known]
    rows += [(LAST, each) for each in last]
    columns: dict[str, Any] = {
        name: [row if of == name else None for of, row in rows] for name in (POINT, KNOWN, LAST)
    }
    empty = pa.struct(dict.fromkeys((*OF_POINT, "gateway"), pa.int64()))
    group = pa.table(
        {
            INSTANCE: ["i"] * len(rows),
            **{name: pa.array(each, None if any(each) else empty) for name, each in columns.items()},
        }
    )
    (row,) = Judge(rules, now_ms=round(now_s * 1000)).found(group).to_pylist()
    episodes: list[dict[str, Any]] = row["episodes"]
    return episodes


def seconds(episode: dict[str, Any], *names: str) -> list[float | None]:
    return [None if episode[name] is None else episode[name].timestamp() for name in names]


def slow(*times: float, value: float = 250.0) -> list[dict[str, Any]]:
    return [point(at_s, value) for at_s in times]


def test_points_are_judged_in_the_order_of_time() -> None:
    (episode,) = found(slow(120, 0, 90, 30, 60), SLOW, now_s=120)

    assert seconds(episode, "started_ts", "fired_ts", "last_ts", "closed_ts") == [0, 90, 120, None]
    assert (episode["state"], episode["samples"], episode["worst"]) == ("open", 5, 250)


def test_an_episode_goes_on_within_the_threshold_until_it_clears() -> None:
    (episode,) = found([*slow(0, 30, 60, 90), *slow(120, value=60), *slow(150, value=50)], SLOW)

    assert (episode["reason"], episode["last"]) == ("recovered", 60)
    assert seconds(episode, "last_ts", "closed_ts") == [120, 120]


def test_a_known_episode_goes_on_and_its_samples_count_once() -> None:
    (first,) = found(slow(0, 30, 60, 90), SLOW, now_s=90)
    times = ("started_ts", "fired_ts", "last_ts", "last_recv_ts")
    known = first | {name: round(first[name].timestamp() * SECOND) for name in times} | {"closed_ts": None}

    (same,) = found(slow(0, 30, 60, 90), SLOW, now_s=90, known=[known])
    (more,) = found(slow(60, 90, 120), SLOW, now_s=120, known=[known])
    (gone,) = found([], SLOW, now_s=166, known=[known])

    assert same == first
    assert (more["samples"], more["fired_ts"]) == (5, first["fired_ts"])
    assert (gone["state"], gone["reason"]) == ("closed", "silent")


def test_a_total_that_restarts_is_no_negative_step() -> None:
    told = [point(at_s, value, "t", temporality=CUMULATIVE) for at_s, value in ((0, 5), (30, 9), (60, 2))]

    steps = [each.step for each in life(told).points["t"]]

    assert steps == [5, 4, 2]  # the first value of a new client is all new


def test_what_was_counted_before_the_first_push_that_is_known_is_no_step() -> None:
    told = [point(30, 500.0, "t", temporality=CUMULATIVE), point(60, 501.0, "t", temporality=CUMULATIVE)]

    assert [each.step for each in life(told).points["t"]] == [0, 1]


def test_values_that_are_no_numbers_are_left_out() -> None:
    told = life([point(0, float("nan")), point(30, None), point(60, 3.0)])

    assert [each.value for each in told.points["latency"]] == [3.0]


def test_a_throttled_push_holds_back_the_next() -> None:
    told = life([point(0, 5.0, THROTTLED[0].metric), point(0, 1.0), point(30, 0.0, THROTTLED[0].metric)])

    assert [each.throttle_ms for each in told.pushes] == [MUTED_MS, 0]


@pytest.mark.parametrize(("window_ms", "expected"), [(30, 4.0), (45, 5.0), (60, 6.0), (90, 7.0), (1000, 7.0)])
def test_a_step_counts_for_the_part_of_its_time_in_the_window(window_ms: float, expected: float) -> None:
    assert increase([0, 30, 60], [1.0, 2.0, 4.0], 60, window_ms) == expected


def test_a_rule_of_several_metrics_compares_them_at_the_latest_time_of_a_push() -> None:
    ratio = Rule(id="ratio", metric="retries", op=Op.ABOVE, threshold=0.1, per="sends")
    told = [point(0, 1.0, "retries", src_offset=1), point(2, 4.0, "sends", src_offset=1)]

    ((value,),) = series_of(life(told), ratio).values()

    assert (value.ts, value.value, value.divisor) == (2 * SECOND, 1.0, 4.0)


def test_series_are_added_up_at_each_time() -> None:
    total = Rule(id="total", metric="latency", op=Op.ABOVE, threshold=1.0, agg=Aggregate.SUM)
    told = [point(0, 2.0, attrs='{"topic":"a"}'), point(0, 3.0, attrs='{"topic":"b"}')]

    ((value,),) = series_of(life(told), total).values()

    assert value.value == 5.0


def test_a_trouble_that_throttling_explains_is_not_told() -> None:
    (rule,) = [each for each in default_rules() if each.id == "long-queue"]
    queue = [point(at_s, 60_000.0, rule.metric) for at_s in range(0, 600, 30)]
    throttled = [point(at_s, 5.0, THROTTLED[0].metric) for at_s in range(0, 600, 30)]

    assert [each["rule"] for each in found(queue, rule, now_s=570)] == ["long-queue"]
    assert found([*queue, *throttled], rule, now_s=570) == []


def test_members_that_come_and_go_explain_rebalances() -> None:
    (rule,) = [each for each in default_rules() if each.trouble is BY_ID["rebalance-storm"]]
    totals = [
        point(at_s, at_s / 30, rule.metric, temporality=CUMULATIVE, group_id="g", kind=2)
        for at_s in range(0, 900, 30)
    ]
    minutes = [(begin_ms, begin_ms + 30_000) for begin_ms in range(0, 900_000, 1_000)]

    def worse(judge: Judge) -> bool:
        return any(each.worse for _, _, samples in judge.samples(life(totals)) for each in samples)

    in_a_task = pickle.loads(pickle.dumps(rule))
    assert worse(Judge([in_a_task]))
    assert worse(Judge([in_a_task], {"other": minutes}))
    assert not worse(Judge([in_a_task], {"g": minutes}))


@pytest.mark.parametrize(("is_expected", "now_s", "told"), [(True, 161, 1), (True, 140, 0), (False, 161, 0)])
def test_silence_is_told_once_it_is_longer_than_allowed(is_expected: bool, now_s: float, told: int) -> None:
    rule = Rule(id="silent", metric=SILENCE, op=Op.ABOVE, threshold=3.0, for_s=60.0)
    last = dict.fromkeys(CLIENT) | {
        "recv_ts": 0,
        "push_interval_ms": INTERVAL_MS,
        "terminating": False,
        "is_expected": is_expected,
        "away_ms": 0,
    }

    episodes = found(slow(0), rule, now_s=now_s, last=[last])

    assert [(each["name"], each["last"]) for each in episodes] == [(SILENCE, 5.0)] * told


def of_client(number: int, rule: str = "slow-broker", at_s: float = 0, **more: Any) -> dict[str, Any]:
    """An episode of a client at a broker."""
    row: dict[str, Any] = {
        "rule": rule,
        INSTANCE: str(number),
        "attrs": '{"node_id":"node-1"}',
        "cause": None,
    }
    row |= {"started_ts": DAY + timedelta(seconds=at_s), "push_interval_ms": INTERVAL_MS}
    return row | more


@pytest.mark.parametrize(
    ("begins_s", "clients", "causes"),
    [
        ((0, 10, 20), 5, ["slow-broker: broker node-1"] * 3),
        ((0, 10, 20), 6, []),  # not more than half
        ((0, 10), 2, []),  # too few
        ((0, 10, 100), 5, []),  # not at the same time
    ],
)
def test_a_broker_is_slow_if_most_of_its_clients_say_so(
    begins_s: Sequence[float], clients: int, causes: Sequence[str]
) -> None:
    key = Key(0, "broker", "node-1")
    episodes = [of_client(number, at_s=at_s) for number, at_s in enumerate(begins_s)]

    told = with_causes(episodes, {str(number): [key] for number in range(9)}, {key: clients}, default_rules())

    assert [each["cause"] for each in told] == causes


def test_a_slow_broker_explains_what_its_clients_have_of_it() -> None:
    key = Key(0, "broker", "node-1")
    consequences = [
        of_client(0, "slow-commits", attrs="{}"),
        of_client(0, "slow-produce-requests"),
        of_client(0, "slow-produce-requests", attrs='{"node_id":"node-2"}'),
        of_client(0, "lost", attrs="{}"),
    ]
    episodes = [*(of_client(number) for number in range(3)), *consequences]

    with_causes(episodes, {str(number): [key] for number in range(3)}, {key: 3}, default_rules())

    slow_broker = "slow-broker: broker node-1"
    assert [each["cause"] for each in consequences] == [slow_broker, slow_broker, None, None]
