"""Points from the tables of odradek-spark, for times before those that the console remembers.

The newest files are read first, some at a time, until the time range is read or a bound is reached. A point
that was pushed twice, because the client did not receive the answer, counts once.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, NamedTuple

from odradek.findings.client_metrics import client_metrics
from odradek_console.engine.client_series import Labels
from odradek_console.engine.series_history import LARGEST, ROLES, SMALLEST
from odradek_console.reading.older_clients import interrupted, older_client
from odradek_console.reading.tables_settings import TablesSettings
from odradek_console.rows import ClientDetail, SeriesRow

log = logging.getLogger(__name__)
TABLE: Final = "points"
MOST_POINTS: Final = 300
"""Points of a series."""
SLICE_BYTES: Final = 64 << 20
SLICE_FILES: Final = 100
KEPT: Final = 16
KEPT_S: Final = 60.0
LATE: Final = timedelta(minutes=15)
"""The largest difference between the time of a point and that of its push, whose day is the folder."""
SETTINGS: Final = "SET TimeZone = 'UTC'; SET memory_limit = '512MB'; SET temp_directory = ''; SET threads = 2"
LIBRARIES: Final = "the libraries that read them are missing: install odradek-console[tables]"
QUERY: Final = """
WITH chosen AS (
    SELECT client_instance_id AS instance, name, coalesce(attrs, '{{}}') AS attrs,
        coalesce(time_unix_nano, src_offset) AS place, min(ts) AS taken,
        any_value(coalesce(value, CAST(value_int AS DOUBLE))) AS number,
        any_value(CASE WHEN kind = 2 AND coalesce(monotonic, true) THEN temporality ELSE 0 END) AS counts
    FROM {files}
    WHERE {identity} AND ts >= $begin AND ts < $end
    GROUP BY ALL
), stepped AS (
    SELECT *, CASE counts WHEN 1 THEN number ELSE number - lag(number) OVER (
        PARTITION BY instance, name, attrs ORDER BY place) END AS step
    FROM chosen WHERE isfinite(number)
)
SELECT name, attrs, max(counts) > 0, epoch_ms(taken) // {step_ms} AS bucket, max(epoch_ms(taken)),
    max_by(number, taken), max(number), min(number), coalesce(sum(if(step < 0, number, step)), 0), count(*)
FROM stepped GROUP BY name, attrs, bucket ORDER BY name, attrs, bucket
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Selects points. An empty instance id stands for all instances of the client id and principal."""

    instance: str = ""
    client_id: str = ""
    principal: str = ""
    begin_ms: int
    end_ms: int

    @property
    def step_ms(self) -> int:
        """The distance of two points."""
        return max(1_000, -(-(self.end_ms - self.begin_ms) // MOST_POINTS))

    @property
    def times(self) -> tuple[datetime, datetime]:
        """The begin and the end."""
        begin, end = (datetime.fromtimestamp(each / 1000, UTC) for each in (self.begin_ms, self.end_ms))
        return begin, end

    def identity(self) -> tuple[str, dict[str, object]]:
        """The SQL condition, and its values."""
        if self.instance:
            return "client_instance_id = $instance", {"instance": self.instance}
        told: dict[str, object] = {"client_id": self.client_id, "principal": self.principal}
        return "coalesce(client_id, '') = $client_id AND coalesce(principal, '') = $principal", told


@dataclass(frozen=True, slots=True, kw_only=True)
class Older:
    """The points that the tables have."""

    series: tuple[SeriesRow, ...] = ()
    step_ms: int = 0
    """The distance of two points."""
    notes: tuple[str, ...] = ()
    """The reasons why points are missing."""


class Bucket(NamedTuple):
    """The points of a series within a step."""

    last_ms: int
    last: float
    largest: float
    smallest: float
    increase: float

    def united(self, other: Bucket) -> Bucket:
        """The points of both."""
        newer = max(self, other)
        return Bucket(
            newer.last_ms,
            newer.last,
            max(self.largest, other.largest),
            min(self.smallest, other.smallest),
            self.increase + other.increase,
        )


class File(NamedTuple):
    """A file of the table. Its times are None if the log does not tell them."""

    first: datetime | None
    last: datetime | None
    size_bytes: int
    path: str


Buckets = dict[tuple[str, str, bool], dict[int, Bucket]]
"""By name, labels as JSON, and whether it is a counter; then by step."""


class OlderPoints:
    """Asks the tables. Any thread may call it; one question is answered at a time.

    Args:
        settings: Where they are, and the bounds.
        now_s: A monotonic clock.
    """

    def __init__(self, settings: TablesSettings, now_s: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        self.now_s = now_s
        self.lock = threading.Lock()
        self.kept: dict[Wanted, tuple[float, Older]] = {}

    def ask(self, wanted: Wanted) -> Older:
        """The points of a client. An answer is kept for a minute: the range begins with a step."""
        step_ms, span_ms = wanted.step_ms, wanted.end_ms - wanted.begin_ms
        begin_ms = -(-wanted.begin_ms // step_ms) * step_ms
        rounded = replace(wanted, begin_ms=begin_ms, end_ms=begin_ms + span_ms)
        if not self.lock.acquire(timeout=self.settings.timeout_s):
            return Older(notes=(f"{self.settings.path}: other questions come first; reload the page later",))
        try:
            asked_s, found = self.kept.get(rounded, (float("-inf"), Older()))
            if self.now_s() - asked_s > KEPT_S:
                found = self.answer(rounded)
                self.kept.pop(rounded, None)
                if len(self.kept) >= KEPT:
                    del self.kept[next(iter(self.kept))]
                self.kept[rounded] = self.now_s(), found
            return found
        finally:
            self.lock.release()

    def client(self, name: str) -> ClientDetail | None:
        """A client of the tables, by its instance id or client id; None, too, if they cannot be read."""
        try:
            import duckdb
            from deltalake.exceptions import DeltaError

            from odradek_tables.dataset import Dataset
            from odradek_tables.duckdb_files import add_table
            from odradek_tables.log import paths_between
            from odradek_tables.schemas import CLIENTS
        except ImportError:
            return None
        path, timeout_s = self.settings.path, self.settings.timeout_s
        if not self.lock.acquire(timeout=timeout_s):
            return None
        try:
            table = Dataset(path).open(CLIENTS)
            if table is None:
                return None
            with duckdb.connect() as connection, interrupted(connection, timeout_s):
                connection.execute(SETTINGS)
                add_table(connection, path, CLIENTS, paths_between(table, CLIENTS.time))
                return older_client(connection, name)
        except (duckdb.Error, DeltaError, OSError, ValueError) as error:
            log.warning("%s: the client %r was not looked up: %s", path, name, first_line(error))
            return None
        finally:
            self.lock.release()

    def answer(self, wanted: Wanted) -> Older:
        """Read the tables."""
        try:
            import duckdb
            from deltalake.exceptions import DeltaError

            import odradek_tables.duckdb_files  # noqa: F401
        except ImportError:
            return Older(notes=(f"{self.settings.path}: {LIBRARIES}",))
        reading = Reading(self.settings, wanted, self.now_s() + self.settings.timeout_s, self.now_s)
        try:
            reading.read()
        except (duckdb.Error, DeltaError, OSError, ValueError) as error:
            reading.notes.append(f"{self.settings.path} cannot be read: {first_line(error)}")
        return Older(
            series=tuple(rows(reading.found, wanted.step_ms)),
            step_ms=wanted.step_ms,
            notes=tuple(reading.notes),
        )


class Reading:
    """One question.

    Args:
        settings: Where the tables are, and the bounds.
        wanted: The points.
        end_s: When it has to end.
        now_s: A monotonic clock.
    """

    def __init__(
        self, settings: TablesSettings, wanted: Wanted, end_s: float, now_s: Callable[[], float]
    ) -> None:
        self.settings, self.wanted, self.end_s, self.now_s = settings, wanted, end_s, now_s
        self.found: Buckets = {}
        self.notes: list[str] = []

    def read(self) -> None:
        """Read slices until all are read or a bound is reached."""
        import duckdb

        from odradek_tables.duckdb_files import add_table
        from odradek_tables.schemas import POINTS

        rows, size_bytes, back_to = 0, 0, None
        with duckdb.connect() as connection:
            connection.execute(SETTINGS)
            for number, files in enumerate(slices(self.files())):
                size_bytes += sum(each.size_bytes for each in files)
                bound = self.bound(rows, size_bytes)
                if bound:
                    self.stop(bound, back_to)
                    return
                try:
                    with interrupted(connection, self.end_s - self.now_s()):
                        name = f"slice_{number}"
                        add_table(connection, self.settings.path, POINTS, [each.path for each in files], name)
                        rows += self.add(connection.execute(*self.query(name)).fetchall())
                except duckdb.InterruptException:
                    self.stop(f"{self.settings.timeout_s:g} s", back_to)
                    return
                back_to = min((each.first for each in files if each.first is not None), default=back_to)

    def bound(self, rows: int, size_bytes: int) -> str:
        """The bound that is reached; empty for none."""
        if self.now_s() >= self.end_s:
            return f"{self.settings.timeout_s:g} s"
        if rows >= self.settings.max_rows:
            return f"{self.settings.max_rows} points"
        return f"{self.settings.max_bytes} bytes of files" if size_bytes > self.settings.max_bytes else ""

    def stop(self, bound: str, back_to: datetime | None) -> None:
        """Tell that a bound is reached."""
        how_far = "nothing" if back_to is None else f"only what is newer than {back_to:%Y-%m-%d %H:%M} UTC"
        self.notes.append(f"{self.settings.path}: {how_far} was read, because a question may take {bound}.")

    def files(self) -> list[File]:
        """The files that may have points of the time range, the newest first."""
        import pyarrow as pa
        from deltalake import DeltaTable

        place = f"{self.settings.path}/{TABLE}"
        actions = pa.table(DeltaTable(place).get_add_actions(flatten=True))
        names = ["path", "size_bytes", "partition.date", "min.ts", "max.ts"]
        begin, end = self.wanted.times
        first_day, last_day = f"{begin - LATE:%Y-%m-%d}", f"{end + LATE:%Y-%m-%d}"
        found = []
        for row in actions.select([each for each in names if each in actions.schema.names]).to_pylist():
            first, last = row.get("min.ts"), row.get("max.ts")
            if (
                (last is None or last >= begin)
                and (first is None or first < end)
                and first_day <= str(row.get("partition.date", first_day)) <= last_day
            ):
                found.append(File(first, last, row["size_bytes"], f"{place}/{row['path']}"))
        return sorted(found, key=lambda each: each.last or end, reverse=True)

    def query(self, files: str) -> tuple[str, Mapping[str, object]]:
        """The query of the view of some files, and its values."""
        identity, values = self.wanted.identity()
        text = QUERY.format(files=files, identity=identity, step_ms=self.wanted.step_ms)
        begin, end = self.wanted.times
        return text, values | {"begin": begin, "end": end}

    def add(self, answered: Iterable[tuple[Any, ...]]) -> int:
        """Add the rows of a query; returns the number of points that they stand for."""
        points = 0
        for name, attrs, is_counter, step, last_ms, last, largest, smallest, increase, count in answered:
            of_series = self.found.setdefault((name, attrs, is_counter), {})
            bucket = Bucket(last_ms, last, largest, smallest, increase)
            known = of_series.get(step)
            of_series[step] = bucket if known is None else known.united(bucket)
            points += count
        return points


def slices(files: Sequence[File]) -> Iterator[list[File]]:
    """The files, some at a time."""
    found: list[File] = []
    size_bytes = 0
    for each in files:
        if found and (size_bytes + each.size_bytes > SLICE_BYTES or len(found) == SLICE_FILES):
            yield found
            found, size_bytes = [], 0
        found.append(each)
        size_bytes += each.size_bytes
    if found:
        yield found


def rows(found: Buckets, step_ms: int) -> Iterator[SeriesRow]:
    for (name, attrs, is_counter), steps in sorted(found.items()):
        known = client_metrics().get(name)
        buckets = [steps[each] for each in sorted(steps)]
        role = ROLES.get(known.aggregate) if known is not None else None
        points = tuple(rates(buckets) if is_counter else values(buckets, role))
        yield SeriesRow(
            metric=name,
            labels=labels_of_json(attrs),
            kind="counter" if is_counter else "gauge",
            source="tables",
            unit=known.unit if known else "",
            help=known.help if known else "",
            value=points[-1][1] if points else None,
            peers=None,
            points=points,
        )


def rates(buckets: Sequence[Bucket]) -> Iterator[tuple[int, float]]:
    """Increases per second since the point before."""
    for before, bucket in pairwise(buckets):
        if bucket.last_ms > before.last_ms:
            yield bucket.last_ms, bucket.increase * 1000 / (bucket.last_ms - before.last_ms)


def values(buckets: Iterable[Bucket], role: int | None) -> Iterator[tuple[int, float]]:
    """Of a maximum the largest value, of a minimum the smallest, otherwise the last."""
    for each in buckets:
        value = {LARGEST: each.largest, SMALLEST: each.smallest}.get(role or 0, each.last)
        yield each.last_ms, value


def labels_of_json(text: str) -> Labels:
    """The labels of a series."""
    found = json.loads(text)
    return tuple((key, str(value)) for key, value in found.items()) if isinstance(found, dict) else ()


def first_line(error: Exception) -> str:
    """The first line of a message, shortened."""
    return (str(error).splitlines() or [type(error).__name__])[0][:300]


def joined(remembered: Sequence[SeriesRow], older: Sequence[SeriesRow]) -> Iterator[SeriesRow]:
    """The series of both; what the console remembers of a series replaces the points of the tables."""
    by_key = {(each.metric, frozenset(each.labels)): each for each in older}
    for row in remembered:
        found = by_key.pop((row.metric, frozenset(row.labels)), None)
        if found is None:
            yield row
            continue
        begin_ms = row.points[0][0] if row.points else None
        before = [each for each in found.points if begin_ms is None or each[0] < begin_ms]
        yield replace(row, points=(*before, *row.points))
    yield from by_key.values()
