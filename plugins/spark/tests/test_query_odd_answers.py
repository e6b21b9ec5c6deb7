"""Answers with arbitrary client ids, with numbers that JSON lacks, and for extreme times."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from telemetry_rows import MIDNIGHT_S, Told, gauge, ingest

from odradek_spark.cli.main import spark
from odradek_spark.cli.printing import columns_of, lines, show
from odradek_tables.dataset import Dataset
from odradek_tables.query import questions
from odradek_tables.query.questions import Window
from odradek_tables.query.reader import Reader
from odradek_tables.query.views import TWO_LEVELS

MIDNIGHT = datetime.fromtimestamp(MIDNIGHT_S, UTC)
EVIL = "\x1b[2J\x1b]0;mine\x07\u202egnp\n"


def dataset_of(path: Path, pushes: Sequence[Told]) -> str:
    root = str(path / "dataset")
    ingest(Dataset(root), pushes, 0)
    return root


def ask(root: str, *arguments: str) -> Result:
    return CliRunner().invoke(spark, ["query", *arguments, "--dataset", root])


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("stream", [io.StringIO, Screen])
def test_control_characters_in_a_client_id_do_not_reach_the_terminal(
    stream: type[io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    output = stream()
    monkeypatch.setattr("sys.stdout", output)
    monkeypatch.setenv("COLUMNS", "200")

    show(pa.table({"client_id": [EVIL], "name": ["org.apache.kafka.\x9b31m"]}), "table", "nothing")

    text = output.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "")  # the bold heading
    assert not [char for char in text if not char.isprintable() and char != "\n"]
    assert "\\x1b[2J\\x1b]0;mine\\x07\\u202egnp\\n" in text
    assert len(text.splitlines()) == 2


def test_json_output_is_valid_whatever_the_values(tmp_path: Path) -> None:
    root = dataset_of(tmp_path, [gauge(Told(0), 1.0)])
    statement = """
        SELECT ['nan'::DOUBLE, 'inf'::DOUBLE, 1.5] AS l, {'a': ts, 'b': 'x'::BLOB} AS s, ts::DATE AS d,
            ts - (ts - INTERVAL 90 SECOND) AS span, TIME '10:00:00' AS t,
            sum(1) AS n, 1.50::DECIMAL(9, 2) AS exact
        FROM points GROUP BY ts
    """

    (line,) = ask(root, "sql", statement, "--format", "json").output.splitlines()
    (row,) = csv.DictReader(io.StringIO(ask(root, "sql", statement, "--format", "csv").output))

    found = json.loads(line, parse_constant=pytest.fail)
    assert found["l"] == ["nan", "inf", 1.5]
    assert found["s"] == {"a": "2026-09-22T00:00:00.000Z", "b": "78"}
    assert (found["d"], found["t"], found["n"], found["exact"]) == ("2026-09-22", "10:00:00", 1, "1.50")
    assert json.loads(row["l"]) == found["l"]
    assert json.loads(row["s"]) == found["s"]


@pytest.mark.parametrize(
    ("arguments", "rows"),
    [
        (("--since", "99999999999d"), 1),
        (("--since", "0001-01-01"), 1),
        (("--since", "9999-12-31T23:59:59"), 0),
        (("--until", "9999-12-31T23:59:59"), 1),
        (("--until", "0001-01-01T00:00:00+05:00"), 0),
    ],
)
def test_any_time_is_accepted(tmp_path: Path, arguments: tuple[str, str], rows: int) -> None:
    root = dataset_of(tmp_path, [gauge(Told(0), 1.0)])

    result = ask(root, "clients", *arguments, "--format", "json")

    assert (result.exit_code, len(result.output.splitlines())) == (0, rows)


def test_a_client_without_a_client_id_can_be_queried(tmp_path: Path) -> None:
    root = dataset_of(tmp_path, [gauge(Told(0, client_id=""), 1.0), gauge(Told(9, client=2), 1.0)])

    result = ask(root, "client", "--client-id", "", "--format", "json")

    assert [json.loads(line)["client_id"] for line in result.output.splitlines()] == [""]


def test_clients_are_counted_within_the_time(tmp_path: Path) -> None:
    pushes = [Told(at_s, version="4.0.0" if at_s < 50 else "4.1.0") for at_s in (0, 30, 60, 90)]
    root = dataset_of(tmp_path, pushes)
    window = Window(since=MIDNIGHT + timedelta(seconds=20), until=MIDNIGHT + timedelta(seconds=70))
    reader = Reader(root, window.since, window.until)

    (row,) = questions.clients(reader, window).to_pylist()
    (version,) = questions.versions(
        reader, replace(window, until=MIDNIGHT + timedelta(seconds=40))
    ).to_pylist()

    assert (row["pushes"], row["software"]) == (2, "apache-kafka-java 4.1.0")
    assert [(row[name] - MIDNIGHT).total_seconds() for name in ("first_seen", "last_seen")] == [30, 60]
    assert (version["software_version"], version["pushes"]) == ("4.0.0", 1)


@pytest.mark.parametrize(
    ("by", "aggregate", "values"), [("topic", "sum", [7.0, 2.0]), ("client_id", "mean", [9.0])]
)
def test_a_metric_of_two_levels_is_ranked_once(
    tmp_path: Path, by: str, aggregate: str, values: list[float]
) -> None:
    whole = gauge(Told(0), 9.0, TWO_LEVELS[0])
    root = dataset_of(
        tmp_path, [gauge(gauge(whole, 7.0, TWO_LEVELS[0], topic="a"), 2.0, TWO_LEVELS[0], topic="b")]
    )

    found = questions.top(Reader(root), TWO_LEVELS[0], Window(), by, aggregate)

    assert found["value"].to_pylist() == values


def test_a_repeated_push_is_recognized_across_midnight(tmp_path: Path) -> None:
    first = gauge(Told(-1_800, interval_ms=3_600_000), 1.0)
    again = replace(first, at_s=4_800, raw=first.payload())
    root = dataset_of(tmp_path, [first, again])
    since = MIDNIGHT + timedelta(seconds=4_560)

    found = Reader(root, since).ask("SELECT count(*) AS n FROM v_points WHERE recv_ts >= ?", [since])

    assert found["n"][0].as_py() == 0


def test_an_empty_answer_is_a_heading() -> None:
    assert list(lines(columns_of(pa.table({"a": pa.array([], pa.int64())})))) == ["a"]


def shown(rows: pa.Table, columns: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines on a terminal, without bold type."""
    screen = Screen()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", str(columns))
    show(rows, "table", "nothing")
    return [re.sub("\x1b\\[\\d+m", "", line).rstrip() for line in screen.getvalue().splitlines()]


WIDE = pa.table(
    {"client_id": ["a", "bb"], "instance": ["x" * 22, "y" * 22], "unit": ["", None], "n": [1, 20]}
)


def test_a_table_that_fits_has_a_line_for_each_row(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(WIDE, 40, monkeypatch)

    assert found == [
        "client_id  instance                 n",
        f"a          {'x' * 22}   1",
        f"bb         {'y' * 22}  20",
    ]


def test_on_a_narrow_terminal_each_row_is_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    found = shown(WIDE, 36, monkeypatch)

    assert found == [
        "client_id  a",
        f"instance   {'x' * 22}",
        "n          1",
        "",
        "client_id  bb",
        f"instance   {'y' * 22}",
        "n          20",
    ]
