"""Points from the tables of odradek-spark, written by its own writer."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient
from telemetry_rows import LATENCY, MIDNIGHT_S, SENT, Told, counted, gauge, ingest

from odradek.topic.telemetry_topic import record_key
from odradek_console.engine.client_series import Labels
from odradek_console.reading.older_points import Older, OlderPoints, Wanted, joined
from odradek_console.reading.tables_settings import TablesSettings
from odradek_console.rows import SeriesRow
from odradek_console.view import View
from odradek_console.web.app import make_app
from odradek_console.web.console import make_console
from odradek_tables.dataset import Dataset
from odradek_tables.files import write_files
from odradek_tables.schemas import CLIENTS
from support.console_client import no_cluster, page_client
from support.delta_clients import EPOCH_S
from support.watched_clients import WatchedClients, level

pytest.importorskip("deltalake")
MINUTES = 60
LARGEST = "org.apache.kafka.producer.request.latency.max"
DAY_MS = 86_400_000
BEGIN_MS = MIDNIGHT_S * 1000


def instance(number: int) -> str:
    return record_key(bytes([number]) * 16).decode()


def asked(path: Path | str, begin_ms: int = BEGIN_MS, end_ms: int = BEGIN_MS + DAY_MS, **which: str) -> Older:
    """The points of client 1 in the tables."""
    given = {"instance": instance(1)} | which
    return OlderPoints(TablesSettings(path=str(path))).ask(Wanted(begin_ms=begin_ms, end_ms=end_ms, **given))


def points(older: Older, metric: str = LATENCY) -> dict[Labels, list[tuple[float, float]]]:
    """Seconds after midnight and values, by labels."""
    return {
        row.labels: [((at - BEGIN_MS) / 1000, value) for at, value in row.points]
        for row in older.series
        if row.metric == metric
    }


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours of client 1 and of a client beside it, in two commits."""
    path = tmp_path_factory.mktemp("tables") / "data set's"
    dataset, start = Dataset(str(path)), 0
    for hour in (0, 1):
        start = ingest(dataset, pushes(hour * 3600), start)
    return path


def pushes(begin_s: int) -> Sequence[Told]:
    """A push each ten minutes; the last one twice."""
    found = []
    for minute in range(0, 60, 10):
        at_s = begin_s + minute * 60
        told = gauge(Told(at_s), at_s / 600, topic="a")
        told = gauge(gauge(told, float(minute), LARGEST), 1.0, topic="b")
        found.append(counted(told, 60.0, at_s - 600))
        found.append(gauge(Told(at_s, client=2, client_id="other"), 99.0))
    return [*found, found[-2]]


def test_tables_in_a_store_are_read_like_local_ones(root: Path) -> None:
    """Files of any URI are read through Arrow, those of a path by DuckDB itself."""
    of_store, of_disk = asked(root.as_uri()), asked(root)

    assert of_store == of_disk
    assert of_disk.series


def test_a_store_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    (note,) = asked(f"{tmp_path.as_uri()}/absent").notes

    assert note.startswith(f"{tmp_path.as_uri()}/absent cannot be read: ")


def test_gauges_by_time_and_labels(root: Path) -> None:
    older = asked(root)

    found = points(older)

    assert older.notes == ()
    assert found[("topic", "a"),] == [(600.0 * each, float(each)) for each in range(12)]
    assert len(found[("topic", "b"),]) == 12
    assert [row.kind for row in older.series if row.metric == LATENCY] == ["gauge", "gauge"]


def test_a_counter_is_per_second_and_a_repeated_push_counts_once(root: Path) -> None:
    found = points(asked(root), SENT)

    assert found[()] == [(600.0 * each, 0.1) for each in range(1, 12)]


def test_a_time_range(root: Path) -> None:
    found = points(asked(root, BEGIN_MS + 3_000_000, BEGIN_MS + 4_200_000 - 1))

    assert [at for at, _ in found[("topic", "a"),]] == [3_000.0, 3_600.0]


def test_long_ranges_have_few_points_and_a_maximum_keeps_the_largest(root: Path) -> None:
    month_ms = 30 * DAY_MS
    older = asked(root, BEGIN_MS + DAY_MS - month_ms, BEGIN_MS + DAY_MS)

    assert older.step_ms == month_ms // 300
    assert points(older, LARGEST) == {(): [(6_600.0, 50.0)]}


def test_all_instances_of_a_client_id(root: Path) -> None:
    found = asked(root, instance="", client_id="other", principal="User:ANONYMOUS")

    assert {value for each in points(found).values() for _, value in each} == {99.0}


def test_a_total_that_restarts(tmp_path: Path) -> None:
    totals = enumerate((5, 65, 6, 12))
    pushed = [counted(Told(60.0 * minute), total, 0.0, "cumulative") for minute, total in totals]
    ingest(Dataset(str(tmp_path)), pushed, 0)

    found = points(asked(tmp_path, BEGIN_MS, BEGIN_MS + 3_600_000), SENT)

    assert found[()] == [(60.0, 1.0), (120.0, 0.1), (180.0, 0.1)]


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    older = asked(tmp_path / "nowhere")

    assert older.series == ()
    assert f"{tmp_path / 'nowhere'} cannot be read" in older.notes[0]


def test_a_damaged_table_is_told(root: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(root, damaged)
    for file in damaged.glob("points/**/*.parquet"):
        file.write_bytes(b"PAR1 not really")

    older = asked(damaged)

    assert older.series == ()
    assert "cannot be read" in older.notes[0]


def test_a_file_that_is_gone_is_told(root: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(root, damaged)
    next(damaged.glob("points/**/*.parquet")).unlink()

    assert "cannot be read" in asked(damaged).notes[0]


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        ({"max_bytes": 1}, "1 bytes of files"),
        ({"timeout_s": 0.0}, "0 s"),
        ({"max_rows": 0}, "0 points"),
    ],
)
def test_bounds_are_told(root: Path, bound: dict[str, Any], words: str) -> None:
    tables = OlderPoints(TablesSettings(path=str(root), **bound))

    older = tables.ask(Wanted(instance=instance(1), begin_ms=BEGIN_MS, end_ms=BEGIN_MS + DAY_MS))

    assert older.series == ()
    assert older.notes == (f"{root}: nothing was read, because a question may take {words}.",)


def test_the_newest_files_are_read_first(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odradek_console.reading.older_points.SLICE_FILES", 1)
    tables = OlderPoints(TablesSettings(path=str(root), max_rows=1))

    older = tables.ask(Wanted(instance=instance(1), begin_ms=BEGIN_MS, end_ms=BEGIN_MS + DAY_MS))

    assert [at for at, _ in points(older)[("topic", "a"),]] == [3_600.0 + 600 * each for each in range(6)]
    assert "newer than 2026-09-22 01:00 UTC" in older.notes[0]


def test_an_answer_is_kept_for_a_minute(root: Path, tmp_path: Path) -> None:
    clock, wanted = [0.0], Wanted(instance=instance(1), begin_ms=BEGIN_MS, end_ms=BEGIN_MS + DAY_MS)
    copied = tmp_path / "copied"
    shutil.copytree(root, copied)
    tables = OlderPoints(TablesSettings(path=str(copied)), lambda: clock[0])

    first = tables.ask(wanted)
    shutil.rmtree(copied)
    clock[0] = 60.0
    same = tables.ask(wanted)
    clock[0] = 61.0

    assert first.series
    assert same is first
    assert tables.ask(wanted).series == ()


def row(metric: str, *points: tuple[int, float], **labels: str) -> SeriesRow:
    return SeriesRow(
        metric=metric,
        labels=tuple(labels.items()),
        kind="gauge",
        source="pushed",
        unit="",
        help="",
        value=None,
        peers=None,
        points=points,
    )


def test_what_is_remembered_replaces_the_points_of_the_tables() -> None:
    remembered = [row("a", (10, 1.0), (11, 2.0), x="1", y="2"), row("b", (10, 1.0))]
    older = [row("a", (9, 0.5), (10, 9.9), (12, 9.9), y="2", x="1"), row("c", (1, 1.0))]

    found = list(joined(remembered, older))

    assert [(each.metric, each.points) for each in found] == [
        ("a", ((9, 0.5), (10, 1.0), (11, 2.0))),
        ("b", ((10, 1.0),)),
        ("c", ((1, 1.0),)),
    ]


# the page


def inventory(root: Path, *clients: Mapping[str, object]) -> None:
    """Write rows of the inventory."""
    rows = pa.Table.from_pylist(list(clients), CLIENTS.schema)
    dataset = Dataset(str(root))
    dataset.create([CLIENTS])
    dataset.exchange(CLIENTS, [], write_files(dataset.root, CLIENTS, rows), {}, data_change=True)


def seen(number: int, client_id: str, last_s: int, **more: object) -> dict[str, object]:
    """A row of a client that pushed six times in the hour before a second after midnight."""
    times = [datetime.fromtimestamp(MIDNIGHT_S + each, UTC) for each in (last_s - 3_000, last_s)]
    names = {"client_instance_id": instance(number), "client_id": client_id, "bucket": 0, "pushes": 6}
    return names | {"valid_from": times[0], "valid_to": times[1], "last_seen": times[1]} | more


@pytest.fixture
def pages(root: Path) -> TestClient:
    """The page of client 1, of which the console remembers two pushes: one an hour after the tables' last."""
    now_ms = BEGIN_MS + 3 * 3_600_000
    view = View(no_cluster, now_ms=lambda: now_ms)
    clients = WatchedClients(view.fleet)
    for second in (10_700, 10_760):
        at = second + MIDNIGHT_S - EPOCH_S
        clients.push(
            at,
            level(LATENCY.removeprefix("org.apache.kafka."), 70.0, at, topic="a"),
            client_id="app",
            instance=bytes([1]) * 16,
            principal="User:ANONYMOUS",
        )
    tables = OlderPoints(TablesSettings(path=str(root)))
    console = make_console(view, no_cluster, "nowhere", tables=tables)
    console.now_ms = view.now_ms
    return page_client(make_app(console))


def test_the_page_of_a_client_goes_back_to_the_tables(pages: TestClient) -> None:
    api = f"/api/v1/clients/{instance(1)}"
    page = pages.get(f"/clients/{instance(1)}?window=7d").text
    remembered = pages.get(f"{api}?window=12h").json()["series"]
    answer = pages.get(f"{api}?window=24h").json()

    def of_topic_a(series: Sequence[dict[str, Any]]) -> list[float]:
        """The values of one series."""
        (found,) = [
            each["points"] for each in series if (each["metric"], each["labels"]) == (LATENCY, {"topic": "a"})
        ]
        return [value for _, value in found]

    assert '<a href="?window=30d' in page
    assert of_topic_a(remembered) == [70.0, 70.0]
    assert of_topic_a(answer["series"]) == [*(float(each) for each in range(12)), 70.0, 70.0]
    assert not [each for each in answer["problems"] if "tables" in each]


def test_a_client_that_only_the_tables_know_has_its_page(pages: TestClient, root: Path) -> None:
    """Its window of a quarter of an hour ends with its last push, and all of it is read from the tables."""
    inventory(
        root,
        seen(2, "other", 3_000, software_name="librdkafka", software_version="2.8.0"),
        seen(
            2,
            "other",
            6_600,
            software_name="librdkafka",
            software_version="2.9.0",
            principal="User:ANONYMOUS",
        ),
        seen(3, "other", 900),
    )

    by_id, by_instance = (pages.get(f"/clients/{each}") for each in ("other", instance(2)))
    found = pages.get(f"/api/v1/clients/{instance(2)}").json()

    assert by_id.text == by_instance.text
    assert "the tables, since the console has forgotten it" in by_id.text
    assert (found["state"], found["pushes"], found["version"]) == ("gone", 12, "2.9.0")
    assert (found["first_ms"], found["last_ms"]) == (BEGIN_MS, BEGIN_MS + 6_600_000)
    ((metric, points),) = [(each["metric"], each["points"]) for each in found["series"]]
    assert metric == LATENCY
    assert points == [[BEGIN_MS + 6_000_000, 99.0], [BEGIN_MS + 6_600_000, 99.0]]
    assert pages.get("/clients/nobody").status_code == 404


@pytest.mark.parametrize("path", ["/nowhere", "s3://"])
def test_a_client_is_unknown_if_the_tables_cannot_be_read(pages: TestClient, path: str) -> None:
    console = pages.app.state.console  # type: ignore[attr-defined]
    console.tables = OlderPoints(TablesSettings(path=path))

    assert pages.get("/clients/other").status_code == 404


def test_a_client_is_looked_up_after_other_questions(root: Path) -> None:
    inventory(root, seen(4, "waiting", 900))
    tables = OlderPoints(TablesSettings(path=str(root), timeout_s=0.01))

    with tables.lock:
        assert tables.client("waiting") is None
    tables.settings = TablesSettings(path=str(root))
    found = tables.client("waiting")
    assert found is not None
    assert found.row.client_instance_id == instance(4)


def test_the_page_tells_what_is_wrong_with_the_tables(pages: TestClient) -> None:
    console = pages.app.state.console  # type: ignore[attr-defined]
    console.tables = OlderPoints(TablesSettings(path="/nowhere"))

    page = pages.get(f"/clients/{instance(1)}?window=24h")

    assert page.status_code == 200
    assert '<p class="notice">/nowhere cannot be read: ' in page.text


def test_without_tables_there_are_no_longer_windows(pages: TestClient) -> None:
    console = pages.app.state.console  # type: ignore[attr-defined]
    console.tables = None

    assert "window=24h" not in pages.get(f"/clients/{instance(1)}").text
    refused = pages.get(f"/clients/{instance(1)}?window=24h")
    assert refused.status_code == 400
    assert "24h needs the tables: --tables" in refused.text
