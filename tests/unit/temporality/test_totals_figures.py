"""The metrics of a destination with totals."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from odradek.meters.destination_metrics import own_rows
from odradek.plugin import Origin, TelemetryRecord
from odradek.temporality import CumulativeForwarder, Limits, TotalsSettings
from support.coroutines import ran
from support.delta_clients import TOPIC, A, B, Scene, d

COMMIT_NS = 2_000_000_000


class Destination:
    """Takes everything."""

    async def start(self) -> None:
        """Nothing to open."""

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Nothing to keep."""

    async def close(self) -> None:
        """Nothing to close."""


def delta(value: float, offset: int, start: float, end: float, instance: bytes = A) -> TelemetryRecord:
    record = Scene().record(d(value, start, end), at=end, instance=instance)
    record.position = Origin(TOPIC, 0, offset)
    return record


@pytest.fixture
def forwarder(tmp_path: Path) -> Iterator[CumulativeForwarder]:
    seconds = itertools.count(step=COMMIT_NS)
    settings = TotalsSettings(file=tmp_path / "totals.db", limits=Limits(max_streams=2))
    made = CumulativeForwarder(Destination(), settings, monotonic_ns=lambda: next(seconds))
    ran(made.start())
    yield made
    ran(made.close())


def values(forwarder: CumulativeForwarder) -> dict[str, float]:
    """Each metric of the destination, with its reason if it has one, by the end of its name."""
    found = {}
    for row in own_rows("otlp", forwarder):
        assert row.attributes["plugin"] == "otlp"
        name = row.name.removeprefix("odradek.temporality.")
        found[" ".join([name, *[text for key, text in row.attributes.items() if key != "plugin"]])] = (
            row.value
        )
    return found


def test_a_destination_tells_what_it_added_and_holds(forwarder: CumulativeForwarder) -> None:
    ran(forwarder.deliver([delta(5, 0, 0, 60), delta(1, 1, 0, 60, B)]))
    ran(forwarder.deliver([delta(2, 2, 60, 120)]))

    found = values(forwarder)

    assert {name: value for name, value in found.items() if value} == {
        "records": 3,
        "points": 3,
        "series": 2,
        "clients": 2,
        "held.size": found["held.size"],
        "commits": 2,
        "commit.time": 2 * COMMIT_NS / 1_000_000_000,
    }


def test_a_destination_tells_what_is_missing(forwarder: CumulativeForwarder) -> None:
    first = delta(5, 0, 0, 60)
    ran(forwarder.deliver([first]))

    ran(forwarder.deliver([first, delta(-1, 3, 60, 120), delta(1, 4, 180, 240), delta(1, 5, 200, 300)]))

    found = values(forwarder)
    assert (found["repeated.records"], found["lost.records"]) == (1, 2)
    assert (found["rejected.points negative"], found["points"]) == (1, 3)
    assert (found["gaps"], found["gap"], found["overlaps"]) == (1, 120, 1)


def test_a_refused_series_is_counted_with_its_reason(forwarder: CumulativeForwarder) -> None:
    ran(forwarder.deliver([delta(1, number, 0, 60, bytes([number]) * 16) for number in range(1, 4)]))

    assert values(forwarder)["rejected.points too_many_streams"] == 1


def test_a_destination_of_delta_values_has_no_such_metrics() -> None:
    assert list(own_rows("otlp", Destination())) == []
