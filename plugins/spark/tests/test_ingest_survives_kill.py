"""kill -9 of each process of the pipeline at every step of a batch: no record is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from ingested import every, is_exactly, offsets, settings
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek_spark.ingest.run import run_ingest
from odradek_spark.jobs.verify import run_verify
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import INGESTED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_000)]
DRIVER = Path(__file__).with_name("ingest_driver.py")
STEPS = (
    "after the offsets",
    "mid-task",
    "before the first commit",
    "between tables",
    "after the last commit",
    "before Spark's commit log",
)
PYTHON_FAULTS = ("planner", "worker", "mid-file")
COMPLETE = "everything is there exactly once"
RUN_TIMEOUT_S = 900


def ingest(bootstrap: str, folder: Path, *faults: str) -> tuple[int, str]:
    """Run the driver in its own process group; return its status and output."""
    with (folder / "driver.log").open("w+") as log:
        driver = subprocess.Popen(
            [sys.executable, str(DRIVER), bootstrap, str(folder), *faults],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            start_new_session=True,
        )
        try:
            status = driver.wait(RUN_TIMEOUT_S)
        finally:
            if driver.poll() is None:
                os.killpg(driver.pid, signal.SIGKILL)
        log.seek(0)
        return status, log.read()


def has_happened(fault: str, folder: Path) -> bool:
    return (folder / f"{fault}.mark").exists()


def files_on_disk(dataset: Path) -> set[str]:
    return {str(path) for table in INGESTED for path in (dataset / table.name).rglob("*.parquet")} - {
        str(path) for path in dataset.rglob("_delta_log/*")
    }


def live_files(dataset: Path) -> set[str]:
    found = (Dataset(str(dataset)).existing(table).file_uris() for table in INGESTED)
    return {unquote(file) for files in found for file in files}


@pytest.mark.nightly
def test_a_driver_can_be_killed(spark: SparkSession, tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(60, partitions=2))
        killed, _ = ingest(host.bootstrap, tmp_path, "between tables")
        seen = offsets(dataset)
        run_ingest(spark, settings(host.bootstrap, dataset), once=True)

    assert killed == -signal.SIGKILL
    assert has_happened("between tables", tmp_path)
    assert len(seen) == len(set(seen)) < 60
    assert COMPLETE in run_verify(spark, str(dataset)).text()
    assert is_exactly(dataset, every(60, 2))


@pytest.fixture(scope="module")
def copies(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a driver that did not die, and its output."""
    folder = tmp_path_factory.mktemp("copies")
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(60, partitions=2))
        status, said = ingest(host.bootstrap, folder, "copies", *PYTHON_FAULTS)
    assert status == 0, said
    return folder, said


@pytest.mark.parametrize("step", STEPS)
def test_the_files_of_every_step_are_enough_to_continue(copies: tuple[Path, str], step: str) -> None:
    folder, said = copies

    assert has_happened(step, folder)
    assert said.count(COMPLETE) == 1 + len(PYTHON_FAULTS)
    assert is_exactly(folder / step, every(120, 2))


def test_the_files_of_tasks_that_never_ended_are_left_for_vacuum(copies: tuple[Path, str]) -> None:
    folder, _ = copies

    assert live_files(folder / "before the first commit") < files_on_disk(folder / "before the first commit")


@pytest.mark.parametrize("fault", PYTHON_FAULTS)
def test_a_python_process_can_be_killed_in_the_middle_of_its_work(
    copies: tuple[Path, str], fault: str
) -> None:
    folder, said = copies

    assert has_happened(fault, folder)
    assert said.count("again in 0.1 s") == len(PYTHON_FAULTS)
    assert is_exactly(folder / fault, every(120, 2))


@pytest.mark.nightly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the executor in /proc")
def test_a_task_of_a_killed_executor_runs_again(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(100, partitions=2))

        status, said = ingest(host.bootstrap, tmp_path, "executor")

    assert status == 0, said
    assert has_happened("executor", tmp_path)
    assert "again in" not in said, "Spark repeats the task, not the query"
    assert COMPLETE in said
    assert is_exactly(dataset, every(100, 2))
    assert live_files(dataset) < files_on_disk(dataset)
