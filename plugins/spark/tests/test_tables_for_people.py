"""Tables for people: what matters first, readable numbers, 80 columns."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner
from telemetry_rows import Told, Value, ingest

from odradek.findings.client_metrics import PREFIX
from odradek.findings.troubles import SILENCE, TROUBLES
from odradek_spark.cli.main import spark
from odradek_spark.cli.printing import Column, fits, show_columns
from odradek_spark.cli.tables import (
    ORDER,
    advice,
    anomalies_table,
    client_summary,
    clients_table,
    label_text,
    series_tables,
    throttled_table,
    top_table,
)
from odradek_tables.dataset import Dataset

pytestmark = pytest.mark.usefixtures("in_utc")
NOW = datetime(2026, 9, 22, 10, 0, tzinfo=UTC)
LATENCY = "producer.node.request.latency"
CLIENT = {
    "client_id": "orders",
    "client_instance_id": "AQEBAQEBAQEBAQEBAQEBAQ",
    "software": "apache-kafka-java 4.1.0",
    "principal": "User:orders",
    "client_address": "10.0.0.7",
    "first_seen": NOW - timedelta(minutes=59),
    "last_seen": NOW,
    "pushes": 1_200,
    "points": 12_960,
    "terminated": False,
    "ways": "pushed",
    "broker_id": 1,
}


def series(name: str, worst: float, attrs: str = "{}", total: float | None = None) -> dict[str, Any]:
    """A row of `questions.client`."""
    row = {
        "client_id": "orders",
        "client_instance_id": CLIENT["client_instance_id"],
        "unit": "",
        "attrs": attrs,
    }
    return row | {
        "name": PREFIX + name,
        "min": 0.0,
        "mean": worst / 2,
        "max": worst,
        "last": 4.0,
        "total": total,
    }


def anomaly(**more: Any) -> dict[str, Any]:
    """A row of `questions.anomalies`."""
    return (
        CLIENT
        | {
            "rule": "slow-produce-requests",
            "name": f"{PREFIX}{LATENCY}.max",
            "attrs": '{"node_id": "node-1"}',
            "worst": 7_790.0,
            "started_ts": NOW - timedelta(minutes=30),
            "last_ts": NOW - timedelta(minutes=15),
            "closed_ts": NOW - timedelta(minutes=15),
            "state": "closed",
            "reason": "recovered",
            "client_rack": None,
            "group_id": None,
            "cause": None,
        }
        | more
    )


@pytest.fixture
def in_utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The clock of this computer shows UTC."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


class Terminal(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def shown(columns: list[Column], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines on a terminal of 80 columns, without bold type."""
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    monkeypatch.setenv("COLUMNS", "80")
    show_columns(columns)
    return screen.getvalue().replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()


def test_the_standard_metrics_come_first_by_concern() -> None:
    rows = [
        series("app.info.start.time.ms", 1.0),
        series("producer.connection.creation.rate", 1.0),
        series("producer.produce.throttle.time.max", 1.0),
        series(f"{LATENCY}.avg", 1.0),
        series(f"{LATENCY}.max", 1.0),
    ]

    found = [(title, list(table[0].texts)) for title, table in series_tables(rows, everything=True)]

    assert found == [
        ("Requests to brokers", [f"{LATENCY}.max", f"{LATENCY}.avg"]),
        ("Throttling by quotas", ["producer.produce.throttle.time.max"]),
        ("Connections", ["producer.connection.creation.rate"]),
        ("Other metrics", ["app.info.start.time.ms"]),
    ]
    assert [title for title, _ in series_tables(rows, everything=False)] == [title for title, _ in found[:3]]


def test_every_metric_of_a_trouble_belongs_to_a_concern() -> None:
    metrics = {name for trouble in TROUBLES for name in trouble.metrics.values() if name != SILENCE}

    assert metrics <= ORDER.keys()


def test_labels_of_nodes_are_words() -> None:
    found = [label_text("node_id", node) for node in ("node-1", "node--1", "node-2147483645")]

    assert found == ["node 1", "bootstrap", "coordinator 2"]


def test_values_have_units_and_sums_their_total() -> None:
    rows = [
        series(f"{LATENCY}.max", 6_200.0, '{"node_id": "node-1"}'),
        series("producer.record.retry.total", 9.0, total=2_216.0),
    ]

    (_, requests), (_, errors) = series_tables(rows, everything=False)

    assert [(column.heading, *column.texts) for column in requests] == [
        ("metric", f"{LATENCY}.max"),
        ("labels", "node 1"),
        ("max", "6.2 s"),
        ("last", "4 ms"),
        ("mean", "3.1 s"),
    ]
    assert [(column.heading, *column.texts) for column in errors][-2:] == [
        ("last", "2,216 in all"),
        ("mean", "-"),
    ]


def test_the_summary_names_the_client_and_its_troubles() -> None:
    shared = anomaly(rule="retries", cause="slow-broker: broker node-2", worst=0.5)

    found = client_summary([CLIENT], [anomaly(), shared], NOW)

    assert found == [
        "orders  AQEBAQEBAQEBAQEBAQEBAQ",
        "  apache-kafka-java 4.1.0, User:orders at 10.0.0.7",
        "  1,200 pushes, 12,960 points, 2026-09-22 09:01 to 10:00 (UTC)",
        "  slow-produce-requests: from 2026-09-22 09:30, 15 min, up to 7.79 s",
        "  retries (slow-broker: broker node-2): from 2026-09-22 09:30, 15 min, up to 50%",
    ]


def test_the_summary_says_that_a_client_arrives_twice() -> None:
    twice = client_summary([CLIENT | {"ways": "otlp,pushed"}], [], NOW)
    otherwise = client_summary([CLIENT | {"ways": "observed"}], [], NOW)

    assert twice[-2:] == [
        "  arrives by 2 ways: otlp, pushed",
        "  totals count it more than once: switch off all ways but one",
    ]
    assert otherwise[-1] == "  came by observed, broker 1"


def test_another_way_than_a_push_is_shown_in_eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = shown(clients_table([CLIENT, CLIENT | {"ways": "otlp,pushed"}]), monkeypatch)

    assert max(map(len, lines)) <= 80
    assert "came by" in lines[0]
    assert "otlp,pushed" in lines[2]


@pytest.mark.parametrize("client_id", ["orders", "a-client-id-of-25-charsxx"])
def test_clients_and_anomalies_fit_eighty_columns(client_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clients = [CLIENT | {"client_id": client_id}, CLIENT]
    anomalies = [anomaly(client_id=client_id), anomaly(state="open")]

    for table in (clients_table(clients), anomalies_table(anomalies, NOW)):
        lines = shown(table, monkeypatch)

        assert max(map(len, lines)) <= 80
        assert lines[1].startswith((client_id, "slow-produce-requests"))
        assert any(line.startswith("not shown, the terminal is too narrow: ") for line in lines)


def test_columns_of_a_pipe_are_never_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_columns(clients_table([CLIENT]))

    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split()[-2:] == ["client_address", "broker_id"]
    assert row.split()[-2:] == ["10.0.0.7", "1"]


def test_an_open_anomaly_lasts_until_the_last_push() -> None:
    table = anomalies_table([anomaly(), anomaly(state="open", closed_ts=None)], NOW)

    columns = {column.heading: list(column.texts) for column in table}
    assert columns["lasted"] == ["15 min", "30 min, open"]
    assert columns["worst"] == ["7.79 s", "7.79 s"]


def test_each_rule_comes_with_its_advice_once() -> None:
    found = advice([anomaly(), anomaly(), anomaly(rule="mine")])

    assert found == [
        f"slow-produce-requests ({LATENCY}.max: above 5 s for 3 min): If many clients of the node are slow, "
        "look at the broker; otherwise at the client's network."
    ]


def test_throttled_minutes_have_avg_and_max_beside_each_other() -> None:
    rows = [
        {"minute": NOW, "client_id": "orders", "client_instance_id": "i", "throttle_ms": value, "name": name}
        for name, value in (
            (f"{PREFIX}producer.produce.throttle.time.avg", 410.0),
            (f"{PREFIX}producer.produce.throttle.time.max", 1_770.0),
        )
    ]

    found = [(column.heading, *column.texts) for column in throttled_table(rows)]

    assert found == [
        ("minute (UTC)", "2026-09-22 10:00"),
        ("client_id", "orders"),
        ("requests", "produce"),
        ("avg", "410 ms"),
        ("max", "1.77 s"),
        ("client_instance_id", "i"),
    ]


def test_top_has_readable_numbers() -> None:
    rows = pa.table(
        {
            "client_id": ["orders", None],
            "value": [7_792.21, 0.027],
            "unit": ["", ""],
            "points": [12_960, 1],
            "instances": [2, 1],
            "last_ts": [NOW, NOW],
        }
    )

    found = [
        (column.heading, *column.texts) for column in top_table(rows, f"{LATENCY}.max", "client_id", "max")
    ]

    assert found[:3] == [
        ("client_id", "orders", "-"),
        ("max", "7.79 s", "0.027 ms"),
        ("points", "12,960", "1"),
    ]


def test_optional_columns_are_taken_in_order_as_they_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = [
        Column("id", ["x" * 30]),
        Column("wide", ["y" * 60], optional=True),
        Column("narrow", ["z" * 20], optional=True),
    ]

    lines = shown(columns, monkeypatch)

    assert lines[0].split() == ["id", "narrow"]
    assert lines[2] == "not shown, the terminal is too narrow: wide"
    assert fits(columns[:1], 30)


def test_of_many_series_the_largest_are_shown_and_the_others_counted() -> None:
    rows = [series(f"{LATENCY}.max", float(n), f'{{"node_id": "node-{n}"}}') for n in range(9)]

    ((_, brief),), ((_, whole),) = (series_tables(rows, everything=each) for each in (False, True))

    assert list(brief[1].texts) == [f"node {n}" for n in range(3, 9)]
    assert len(whole[1].texts) == 9


def test_the_summary_of_many_clients_is_short() -> None:
    found = client_summary([CLIENT] * 200, [anomaly()] * 30, NOW)

    assert found[-12] == "and 195 more clients: odradek spark query clients"
    assert found[-11] == "  orders: slow-produce-requests: from 2026-09-22 09:30, 15 min, up to 7.79 s"
    assert found[-1] == "  and 20 more: odradek spark query anomalies"


def test_a_client_is_shown_whole_or_with_what_matters(tmp_path: Path) -> None:
    root = str(tmp_path / "tables")
    values = (Value(f"{PREFIX}{LATENCY}.max", 6_000.0), Value(f"{PREFIX}app.info.start.time.ms", 1.0))
    ingest(Dataset(root), [Told(float(second), values) for second in (0, 30)], 0)
    question = ["query", "client", "--client-id", "app", "--dataset", root]

    brief, whole = (CliRunner().invoke(spark, [*question, *more]).output for more in ([], ["--all"]))

    assert brief.startswith("app  AQEBAQEBAQEBAQEBAQEBAQ\n")
    assert "slow-produce-requests" not in brief  # a moment above a threshold is no trouble
    assert brief.endswith("\n1 more series: --all shows them, --metric NAME one metric\n")
    assert "app.info.start.time.ms" not in brief
    assert "\nOther metrics\n" in whole
    assert "app.info.start.time.ms" in whole
