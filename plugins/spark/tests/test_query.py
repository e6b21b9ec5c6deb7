from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result
from spark_dataset import LATENCY, THROTTLE, Push, ingested
from spark_payloads import RECEIVED_MS
from telemetry_rows import Told, gauge, ingest

from odradek.plugin import LAG_SOURCE
from odradek_spark.cli.main import spark
from odradek_tables.dataset import Dataset, DatasetError
from odradek_tables.files import write_files
from odradek_tables.query import questions
from odradek_tables.query.questions import Who, Window
from odradek_tables.query.reader import Reader
from odradek_tables.query.units import unit_of
from odradek_tables.schemas import ANOMALIES, BY_NAME

START = datetime.fromtimestamp(RECEIVED_MS / 1000, UTC)
ALWAYS = Window()
PUSHES = [
    Push(client=1, value=10.0),
    Push(client=1, value=30.0, at_s=30),
    Push(client=2, value=99.0, at_s=30),
    Push(client=2, value=99.0, at_s=30),  # the same bytes: a retry
    Push(client=1, value=250.0, at_s=70, name=THROTTLE),
    Push(client=2, value=0.0, at_s=70, name=THROTTLE),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A dataset with `PUSHES` and one anomaly."""
    path = str(tmp_path_factory.mktemp("query") / "dataset")
    dataset = ingested(path, PUSHES)
    dataset.create([ANOMALIES])
    episode = dict.fromkeys(ANOMALIES.schema.names) | {
        "rule": "slow",
        "client_id": "client-1",
        "client_instance_id": "first",
        "name": LATENCY,
        "op": ">",
        "threshold": 5.0,
        "worst": 30.0,
        "started_ts": START,
        "last_ts": START + timedelta(seconds=200),
        "state": "open",
        "date": f"{START:%Y-%m-%d}",
    }
    rows = pa.Table.from_pylist([episode], ANOMALIES.schema)
    dataset.commit_next(ANOMALIES, write_files(path, ANOMALIES, rows), "detect", None, 0)
    return path


@pytest.fixture
def reader(root: str) -> Reader:
    return Reader(root)


def ask(root: str, *arguments: str) -> Result:
    return CliRunner().invoke(spark, ["query", *arguments, "--dataset", root])


def test_a_client_is_shown_series_by_series(reader: Reader) -> None:
    rows = questions.client(reader, Who(client_id="client-1"), ALWAYS).to_pylist()

    found = [(row["name"].rpartition("kafka.")[2], row["points"], row["min"], row["last"]) for row in rows]
    assert found == [
        ("producer.produce.throttle.time.max", 1, 250.0, 250.0),
        ("producer.request.latency.max", 2, 10.0, 30.0),
    ]


def test_a_repeated_push_counts_once(reader: Reader) -> None:
    everything = reader.ask("SELECT count(*) AS n FROM points")["n"][0].as_py()
    counting = reader.ask("SELECT count(*) AS n FROM v_points")["n"][0].as_py()

    assert (everything, counting) == (6, 5)


def test_time_bounds_are_respected(root: str) -> None:
    window = Window(since=START + timedelta(seconds=30), until=START + timedelta(seconds=70))
    reader = Reader(root, window.since, window.until)

    rows = questions.series(reader, Who(client_id="client-1"), window).to_pylist()

    assert [(row["number"], row["ts"]) for row in rows] == [(30.0, START + timedelta(seconds=30))]


def test_the_worst_is_at_the_top(reader: Reader) -> None:
    rows = questions.top(reader, "producer.request.latency.max", ALWAYS)

    assert rows.select(["client_id", "value", "points"]).to_pylist() == [
        {"client_id": "client-2", "value": 99.0, "points": 1},
        {"client_id": "client-1", "value": 30.0, "points": 2},
    ]


def test_throttled_minutes_are_those_with_a_wait(reader: Reader) -> None:
    rows = questions.throttled(reader, ALWAYS).to_pylist()

    minute = (START + timedelta(seconds=70)).replace(second=0, microsecond=0)
    assert [(row["minute"], row["client_id"], row["throttle_ms"]) for row in rows] == [
        (minute, "client-1", 250.0)
    ]


def test_libraries_are_counted_by_instance(reader: Reader) -> None:
    (row,) = questions.versions(reader, ALWAYS).to_pylist()

    assert (row["instances"], row["client_ids"], row["pushes"]) == (2, 2, 6)


def test_a_group_is_no_client(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    ingest(dataset, [gauge(Told(10), 1.0), gauge(Told(10, client=2, source=LAG_SOURCE), 1.0)], 0)
    reader = Reader(dataset.root)

    assert questions.clients(reader, ALWAYS).num_rows == 1
    assert questions.versions(reader, ALWAYS)["instances"].to_pylist() == [1]
    assert reader.ask("SELECT count(*) AS n FROM v_points")["n"].to_pylist() == [2]


def test_an_anomaly_has_its_duration(reader: Reader) -> None:
    (row,) = questions.anomalies(reader, ALWAYS, only_open=True).to_pylist()

    assert (row["rule"], row["client_id"], row["held_s"]) == ("slow", "client-1", 200.0)


@pytest.mark.parametrize(
    ("options", "status"),
    [(["--open", "--exit-code"], 1), (["--open"], 0), (["--exit-code", "--until", "2001-01-01T00:00:00"], 0)],
)
def test_the_exit_status_tells_of_anomalies(root: str, options: list[str], status: int) -> None:
    assert ask(root, "anomalies", *options).exit_code == status


@pytest.mark.parametrize(
    ("question", "line"),
    [
        (
            ("client", "--client-id", "cleint-1"),
            "no client pushed with --client-id cleint-1; did you mean client-1 or client-2?",
        ),
        (("client", "--principal", "User:x\x1b"), r"no client pushed with --principal User:x\x1b"),
        (("client", "--client-id", "client-1", "--topic", "orders"), "no points of the topic orders"),
        (
            ("client", "--client-id", "client-1", "--metric", "request.latency"),
            "no points of request.latency; did you mean producer.request.latency.max?",
        ),
        (
            ("client", "--client-id", "client-1", "--since", "9998-01-01T00:00:00+01:00"),
            "no client pushed with --client-id client-1 since 9997-12-31 23:00:00 UTC",
        ),
        (("client", "--client-id", "client-1", "--client-address", "::1"), "--client-address ::1"),
        (
            ("top", "--metric", "producer.request.latency.mx"),
            "no points of producer.request.latency.mx; did you mean producer.request.latency.max?",
        ),
        (("top", "--metric", "nope"), "no points of nope"),
    ],
    ids=lambda value: " ".join(value[:5]) if isinstance(value, tuple) else None,
)
def test_an_unknown_name_is_told_in_one_line(question: tuple[str, ...], line: str, root: str) -> None:
    result = ask(root, *question)

    (said,) = result.output.splitlines()
    assert said.startswith(line) if line.startswith("no ") else line in said
    assert result.exit_code == 0


def test_names_that_exist_but_not_together_are_told(tmp_path: Path) -> None:
    pushes = [Push(client=1, value=1.0), Push(client=2, value=1.0, name="other")]
    ingested(str(tmp_path), pushes)

    result = ask(str(tmp_path), "client", "--client-id", "client-1", "--metric", "other")

    assert result.output == "no points match all options\n"


def test_a_dataset_given_as_a_uri_answers_the_same(root: str, reader: Reader) -> None:
    asked = f"""SELECT client_id, date, hour, count(*) AS n, max(number) AS worst FROM v_points
        WHERE client_id = 'client-2' AND date = '{START:%Y-%m-%d}' GROUP BY ALL"""

    rows = Reader(f"file://{root}", since=START).ask(asked).to_pylist()

    assert rows == reader.ask(asked).to_pylist()
    assert [(row["n"], row["worst"]) for row in rows] == [(2, 99.0)]


def test_tables_that_no_job_has_written_are_empty(reader: Reader) -> None:
    counts = {
        name: reader.ask(f"SELECT count(*) AS n FROM {name}")["n"][0].as_py()
        for name in [*BY_NAME, "v_rollup"]
    }

    assert counts["rollup_5m"] == counts["clients"] == counts["v_rollup"] == 0
    assert counts["pushes"] == 6


def test_the_columns_are_those_of_the_schemas(reader: Reader) -> None:
    found = {name: reader.ask(f"SELECT * FROM {name} LIMIT 0").schema.names for name in BY_NAME}

    assert found == {name: table.schema.names for name, table in BY_NAME.items()}


def test_a_missing_dataset_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no dataset: check the path"):
        Reader(str(tmp_path))


def test_a_dataset_without_a_push_answers(tmp_path: Path) -> None:
    Dataset(str(tmp_path)).create()

    result = ask(str(tmp_path), "throttled")

    assert (result.exit_code, result.output) == (0, "no client was throttled\n")


def test_queries_need_no_spark() -> None:
    script = "import sys, odradek_spark.cli.query; print('pyspark' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_a_terminal_gets_columns(root: str) -> None:
    result = ask(root, "top", "--metric", "producer.request.latency.max")

    assert [line.split()[:3] for line in result.output.splitlines()] == [
        ["client_id", "max", "points"],
        ["client-2", "99", "ms"],
        ["client-1", "30", "ms"],
    ]


def test_a_pipe_gets_json_or_csv(root: str) -> None:
    as_json = ask(root, "clients", "--format", "json").output
    as_csv = ask(root, "clients", "--format", "csv").output

    rows = [json.loads(line) for line in as_json.splitlines()]
    assert [(row["client_id"], row["pushes"], row["first_seen"]) for row in rows] == [
        ("client-1", 3, f"{START:%Y-%m-%dT%H:%M:%S}.000Z"),
        ("client-2", 3, f"{START + timedelta(seconds=30):%Y-%m-%dT%H:%M:%S}.000Z"),
    ]
    assert [row["client_id"] for row in csv.DictReader(io.StringIO(as_csv))] == ["client-1", "client-2"]


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("org.apache.kafka.producer.request.latency.max", "", "ms"),
        ("org.apache.kafka.producer.request.rate", None, "per s"),
        ("org.apache.kafka.consumer.io.wait.time.ns.total", "", "ns"),
        ("org.apache.kafka.consumer.poll.idle.ratio.avg", "", "ratio"),
        ("mine", "furlong", "furlong"),
        ("mine", "", ""),
    ],
)
def test_a_metric_has_a_unit(name: str, unit: str | None, expected: str) -> None:
    assert unit_of(name, unit) == expected


@pytest.mark.parametrize(
    ("arguments", "status", "line"),
    [
        (("client",), 2, "expected one of --client-id"),
        (("client", "--client-id", "x", "--since", "soon"), 2, "expected 90s, 30m, 2h, 7d"),
        (("sql", "SELECT nonsense"), 2, "nonsense"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_an_invalid_query_is_reported(arguments: tuple[str, ...], status: int, line: str, root: str) -> None:
    result = ask(root, *arguments)

    assert result.exit_code == status
    assert line in result.output
