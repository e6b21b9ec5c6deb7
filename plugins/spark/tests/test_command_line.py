"""``odradek spark`` as a user runs it: from the topic to answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from contrib.capture.ports import free_range
from ingested import every, is_exactly, rows, until
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek.testing import RunningHost
from odradek_spark.cli import session
from odradek_spark.cli.main import spark as commands
from odradek_spark.ingest.progress import last_batch
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import CLIENTS, ROLLUP_5M, Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TIME_LIMIT_S = 350
PROGRAM = (sys.executable, "-m", "odradek", "spark")
RULES = """
[[rule]]
id = "any"
metric = "org.apache.kafka.producer.metric.0"
op = ">="
threshold = 0.0
for_s = 0.0
"""
WHERE = ("--master", "local[2]")

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def host() -> Iterator[RunningHost]:
    with odradek.testing.host() as running:
        running.topics.create(TOPIC, partitions=2)
        yield running


def done(command: Sequence[str], folder: Path) -> str:
    """The output of a command, which must succeed."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    finished = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=TIME_LIMIT_S,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr[-3000:] + finished.stdout
    return finished.stdout


def source(host: RunningHost) -> tuple[str, ...]:
    return ("--bootstrap-server", host.bootstrap, "--topic", TOPIC, "--dataset", "tables")


def test_a_spark_connect_server_runs_it(host: RunningHost, tmp_path: Path) -> None:
    fill(host.bootstrap, records(200, partitions=2))
    batches = ("--max-bytes-per-trigger", "20000")

    printed = done(
        [*PROGRAM, "ingest", "--once", "--conf", "spark.remote=local[2]", *batches, *source(host)], tmp_path
    )

    assert "ingested 200 pushes, 600 points, 0 dead letters" in printed
    assert is_exactly(tmp_path / "tables", every(200, 2))


def test_the_commands_from_run_to_verify_work(
    spark: SparkSession, host: RunningHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(host.bootstrap, records(20, partitions=2))
    (tmp_path / "rules.toml").write_text(RULES)
    tables = tmp_path / "tables"
    dataset = Dataset(str(tables))
    options = (
        "--rules-file",
        "rules.toml",
        "--trigger-interval-ms",
        "1000",
        "--maintenance-interval-ms",
        "1000",
        "--metrics-listener",
        f"http://127.0.0.1:{free_range(1)}",
    )

    with subprocess.Popen(
        [*PROGRAM, "run", "--until-stdin-ends", *WHERE, *source(host), *options],
        stdin=subprocess.PIPE,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    ) as running:
        until(lambda: last_batch(dataset.root) is not None, TIME_LIMIT_S)
        fill(host.bootstrap, records(5, first=20, partitions=2))
        until(lambda: is_exactly(tables, every(25, 2)), TIME_LIMIT_S)
        until(lambda: has_rows(dataset, ROLLUP_5M) and has_rows(dataset, CLIENTS), TIME_LIMIT_S)
        until(lambda: pushes_of_clients(tables) == 25, TIME_LIMIT_S)
        until(lambda: b"odradek_pipeline_ready 1.0" in read(f"{options[-1]}/metrics"))
        until(lambda: b"odradek_pipeline_pushes_total 25.0" in read(f"{options[-1]}/metrics"))
        running.communicate(timeout=60)

    assert running.returncode == 0
    monkeypatch.setattr(session, "opened", lambda *_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)  # it is that of all tests
    clients = CliRunner().invoke(commands, ["query", "clients", "--dataset", str(tables), "--format", "json"])
    assert sum(json.loads(line)["pushes"] for line in clients.output.splitlines()) == 25
    verified = CliRunner().invoke(commands, ["verify", "--dataset", str(tables)])
    assert "everything is there exactly once" in verified.output


def pushes_of_clients(tables: Path) -> int:
    return sum(pushes for (pushes,) in rows(tables, "clients", "pushes"))


def read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=30) as page:
        return bytes(page.read())


def has_rows(dataset: Dataset, table: Table) -> bool:
    found = dataset.open(table)
    return found is not None and bool(found.file_uris())
