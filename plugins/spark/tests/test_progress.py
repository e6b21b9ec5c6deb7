"""The progress shown during ingest."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from ingested import settings
from spark_topics import TOPIC, fill, options, records

import odradek.testing
from odradek_spark.decoder.decode import Decoder
from odradek_spark.ingest.progress import Reached, Shown, duration
from odradek_spark.ingest.status import Totals
from odradek_spark.ingest.watching import IngestWatch
from odradek_spark.sink.commit import Batch, commit
from odradek_spark.sink.written import Written, write_records
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.source.topic import TopicReader
from odradek_spark.tables.dataset import Dataset


class Terminal(io.StringIO):
    """Text for a user."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("reached", "line"),
    [
        (
            Reached(1, 500, 60_000, 0, 1_500, 2.0),
            "500 of 2,000 pushes, 60,000 points, 30,000 points/s, 6 s left",
        ),
        (Reached(1, 9, 90, 1, 0, 2.0), "10 of 10 pushes, 90 points, 45 points/s, 1 dead letters"),
        (Reached(0, 0, 0, 0, None, 0.0), "0 pushes, 0 points, 0 points/s"),
        (Reached(0, 0, 0, 0, 7, 1.0), "0 of 7 pushes, 0 points, 0 points/s"),
    ],
)
def test_a_line_shows_the_whole_progress(reached: Reached, line: str) -> None:
    said = reached.line()

    assert said == line


def test_durations_are_shown_in_readable_units() -> None:
    said = [duration(seconds) for seconds in (0.4, 59, 61, 3_599, 7_320)]

    assert said == ["0 s", "59 s", "1 min 1 s", "59 min 59 s", "2 h 2 min"]


def ingest(bootstrap: str, root: Path, start: int, end: int, batch: int) -> None:
    """The effect of a batch, without Spark."""
    reader = TopicReader(options(bootstrap))
    written = Written("query", TOPIC)
    write_records(reader.read(OffsetRange(0, start, end)), Decoder(), str(root), written)
    reader.close()
    commit(Dataset(str(root)), Batch.of([written], batch))


def test_rates_are_recent_ones() -> None:
    yesterday = Reached(99, 900, 9_000, 0, 0, 86_400.0)

    said = Reached(100, 1_000, 10_000, 0, 50, 86_410.0, yesterday).line()

    assert said == "1,000 of 1,050 pushes, 10,000 points, 100 points/s, 5 s left"


def came(batches: int) -> Totals:
    return Totals(batches, 10 * batches, 30 * batches, 0)


def test_lines_are_rate_limited_and_the_last_one_is_printed() -> None:
    out, now_s = io.StringIO(), iter([0.0, 1.0, 4.0, 11.0, 12.0, 13.0])
    with Shown(out, 10.0, lambda: next(now_s)) as shown:
        for batches in range(1, 6):
            shown.show(came(batches), None)

    assert [line.split()[0] for line in out.getvalue().splitlines()] == ["10", "30", "50"]


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_other_messages_stay_visible(out: io.StringIO) -> None:
    with Shown(out) as shown:
        shown.show(came(1), 5)
        shown.say("a line\n  of a log [x]")

    assert "a line of a log [x]" in out.getvalue()


@pytest.mark.parametrize("out", [io.StringIO(), Terminal()])
def test_batches_are_shown_as_they_come(tmp_path: Path, out: io.StringIO) -> None:
    now = iter([100.0, 102.0, 104.0])
    with odradek.testing.host() as host:
        host.topics.create(TOPIC)
        fill(host.bootstrap, records(40))
        Dataset(str(tmp_path)).create()
        ingest(host.bootstrap, tmp_path, 0, 10, 0)
        given = settings(host.bootstrap, tmp_path)
        with Shown(out, 0.0, lambda: next(now)) as shown, IngestWatch(given, shown.show) as watch:
            watch()
            ingest(host.bootstrap, tmp_path, 10, 20, 1)
            watch()
            ingest(host.bootstrap, tmp_path, 20, 40, 2)
            watch()
            watch()

    said = out.getvalue()
    last = "30 of 30 pushes, 90 points, 22 points/s"
    assert last in said
    assert watch.total == Totals(2, 30, 90, 0)
    if not out.isatty():
        first = "10 of 30 pushes, 30 points, 15 points/s, 4 s left"
        assert said.splitlines() == [first, last]
