"""Whole lives of clients in the tables: what `detect` tells of them, in one run and in several."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count, pairwise
from typing import TYPE_CHECKING, Any

import pytest
from small_session import SMALL
from telemetry_rows import MIDNIGHT_S, Told, Value, ingest

from odradek_spark.jobs.rules import default_rules
from odradek_spark.load import load_dataset
from odradek_tables.dataset import Dataset
from support.client_lives import HEALTHY, SICK, Actor, ClientLife

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
LIVES = [life.of_interval(60) for life in (*HEALTHY, *SICK)]
END_S = max(life.until_s for life in LIVES)
PARTS = 3
Verdicts = Mapping[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class Place:
    """A life as one of many in the same tables: it has a broker of its own, and ends when all do."""

    number: int
    life: ClientLife

    @property
    def begin_s(self) -> float:
        return END_S - self.life.until_s

    def name(self, text: str) -> str:
        """The name of something in this life."""
        return f"node-{self.number}" if text == "node-1" else f"{text}~{self.number}"

    def pushes(self, numbers: Iterator[int]) -> Iterator[Told]:
        for actor in self.life.actors:
            client, before = next(numbers), 0.0
            for at in actor.pushes(self.life.interval_s, self.life.until_s, self.life.away):
                yield self.push(actor, client, at, before)
                before = at

    def push(self, actor: Actor, client: int, at: float, before: float) -> Told:
        """A push: totals as deltas since the push before."""
        values = []
        for (name, labels), value in actor.values.items():
            named = tuple((key, self.name(text) if key == "node_id" else text) for key, text in labels)
            is_sum = name.endswith(".total")
            known = value(before) if is_sum and before else 0.0
            values.append(
                Value(
                    f"org.apache.kafka.{name}",
                    value(at) - known,
                    named,
                    "delta" if is_sum else "",
                    self.begin_s + (before or actor.start) if is_sum else None,
                )
            )
        name = self.name(actor.name)
        facts = {"principal": f"User:{name}", "client_address": f"host-of-{name}", "node_id": self.number}
        return Told(
            self.begin_s + at,
            tuple(values),
            client=client,
            client_id=name,
            interval_ms=int(self.life.interval_s * 1000),
            terminating=at == actor.end and not actor.is_killed,
            resource=(("group_id", self.name(actor.group)),) if actor.group else (),
            facts=tuple(facts.items()),
        )


PLACES = [Place(number, life) for number, life in enumerate(LIVES, 1)]


def settled(at_s: float) -> float:
    """This time, or the next one at which no broker is away whose only client would be taken for silent."""
    for place in PLACES:
        for begin_s, long_s in place.life.away.items():
            first_s = place.begin_s + begin_s
            if first_s < at_s < first_s + long_s + 2 * place.life.interval_s:
                return settled(first_s + long_s + 2 * place.life.interval_s)
    return at_s


@pytest.fixture(
    scope="module",
    params=[pytest.param(1, marks=pytest.mark.nightly), PARTS],
    ids=["in-one-run", "in-three-runs"],
)
def verdicts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Verdicts:
    """What was found of each life. All are in the same tables."""
    from odradek_spark.jobs.episodes import run_detect

    spark.conf.set("spark.sql.codegen.wholeStage", "true")  # so many rows are worth the code
    dataset, numbers, offset = Dataset(str(tmp_path_factory.mktemp("lives"))), count(1), 0
    pushes = sorted((push for place in PLACES for push in place.pushes(numbers)), key=lambda each: each.at_s)
    ends_s = [0.0, *(settled(END_S * part / request.param) for part in range(1, request.param + 1))]
    for begin_s, end_s in pairwise(ends_s):
        told = [each for each in pushes if begin_s < each.at_s <= end_s]
        offset = ingest(dataset, told, offset)
        run_detect(spark, dataset.root, default_rules())
    assert offset == len(pushes)
    spark.conf.set("spark.sql.codegen.wholeStage", SMALL["spark.sql.codegen.wholeStage"])
    found = defaultdict(list)
    by_number = {place.number: place.life.name for place in PLACES}
    for row in load_dataset(spark, dataset.root, "anomalies").toArrow().to_pylist():
        found[by_number[int(row["client_id"].rpartition("~")[2])]].append(row)
    return found


def who(row: dict[str, Any]) -> tuple[str, str]:
    """What an episode tells, and of whom: those of one cause are one."""
    if row["cause"]:
        rule, _, cause = row["cause"].partition(": ")
        return rule, cause.partition(" ")[2]
    return row["rule"], row["client_id"]


@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.life.name)
def test_detect_tells_of_sick_lives_only(verdicts: Verdicts, place: Place) -> None:
    rows, sick = verdicts.get(place.life.name, []), place.life.told

    told = {who(row) for row in rows}

    if sick is None:
        assert told == set()
        return
    assert told == {(sick.id, place.name(sick.many_of or sick.of))}
    own = [row for row in rows if row["rule"] == sick.id]
    begin_s = MIDNIGHT_S + place.begin_s
    fired_s = min(row["fired_ts"].timestamp() for row in own) - begin_s
    assert sick.begins_s <= fired_s <= (sick.alert_by_s or sick.over_s or 0)
    if sick.over_s is None:
        assert {row["state"] for row in own} == {"open"}
    else:
        assert {row["state"] for row in own} == {"closed"}
        assert max(row["last_ts"].timestamp() for row in own) - begin_s <= sick.over_s + 120
