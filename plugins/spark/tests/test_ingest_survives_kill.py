"""kill -9 of each process of the pipeline at every step of a batch: no record is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ingested import every, is_exactly, offsets
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import INGESTED

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_000)]
DRIVER = Path(__file__).with_name("ingest_driver.py")
DRIVER_FAULTS = (
    "after the offsets",
    "mid-task",
    "before the first commit",
    "between tables",
    "after the last commit",
    "before Spark's commit log",
)
RUN_TIMEOUT_S = 400


def ingest(bootstrap: str, dataset: Path, fault: str, folder: Path) -> tuple[int, str]:
    """Run the driver in its own process group; return its status and output."""
    mark = folder / f"{fault}.mark"
    with (folder / f"{fault}.log").open("w+") as log:
        driver = subprocess.Popen(
            [sys.executable, str(DRIVER), bootstrap, str(dataset), fault, str(mark)],
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
        said = log.read()
    assert fault == "none" or mark.exists(), said
    return status, said


def files_on_disk(dataset: Path) -> set[str]:
    return {str(path) for table in INGESTED for path in (dataset / table.name).rglob("*.parquet")} - {
        str(path) for path in dataset.rglob("_delta_log/*")
    }


def test_a_driver_can_be_killed_at_every_step(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    count, codes = 0, []
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        for fault in (*DRIVER_FAULTS, "none"):
            fill(host.bootstrap, records(60, first=count, partitions=2))
            count += 60
            status, said = ingest(host.bootstrap, dataset, fault, tmp_path)
            codes.append(status)
            # every record in the tables is there once, even while a batch hangs between tables
            seen = offsets(dataset)
            assert len(seen) == len(set(seen)) and set(seen) <= set(every(count, 2))  # noqa: PT018

    assert codes == [-signal.SIGKILL] * len(DRIVER_FAULTS) + [0], said
    assert "everything is there exactly once" in said
    assert is_exactly(dataset, every(count, 2))
    live = {file for table in INGESTED for file in Dataset(str(dataset)).existing(table).file_uris()}
    assert live < files_on_disk(dataset), "what the killed ones wrote is left for vacuum"


@pytest.mark.parametrize("fault", ["planner", "worker", "mid-file"])
def test_a_python_process_can_be_killed_in_the_middle_of_its_work(fault: str, tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(100, partitions=2))

        status, said = ingest(host.bootstrap, dataset, fault, tmp_path)

    assert status == 0, said
    assert "again in 0.1 s" in said
    assert "everything is there exactly once" in said
    assert is_exactly(dataset, every(100, 2))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the executor in /proc")
def test_a_task_of_a_killed_executor_runs_again(tmp_path: Path) -> None:
    dataset = tmp_path / "dataset"
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(100, partitions=2))

        status, said = ingest(host.bootstrap, dataset, "executor", tmp_path)

    assert status == 0, said
    assert "again in" not in said, "Spark repeats the task, not the query"
    assert "everything is there exactly once" in said
    assert is_exactly(dataset, every(100, 2))
    live = {file for table in INGESTED for file in Dataset(str(dataset)).existing(table).file_uris()}
    assert live < files_on_disk(dataset)
