"""A driver that ingests once for each fault: it is killed, or kills a planner, worker or executor.

Usage: ingest_driver.py BOOTSTRAP FOLDER FAULT... A fault happens once; FAULT.mark then exists.

With the fault ``copies`` the driver lives on. It copies the dataset at each step of a batch, which leaves the
files that kill -9 would leave. Ingest then continues from each copy, in a folder with the name of the step.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from ingested import every, offsets, settings
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSourceStreamReader,
    DataSourceStreamWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType
from quick_session import local_session
from small_session import SMALL
from spark_topics import fill, records

from odradek_spark.ingest import run
from odradek_spark.ingest.run import run_ingest
from odradek_spark.jobs.verify import run_verify
from odradek_spark.sink.write_options import WriteOptions, write_options
from odradek_spark.sink.writers import TablesStreamWriter
from odradek_spark.sink.written import Written
from odradek_spark.source.limited_stream import LimitedTopicStream
from odradek_spark.source.options import ReadOptions, read_options
from odradek_tables.dataset import Dataset
from odradek_tables.schemas import INGESTED, Table
from pyspark_odradek import DefaultSource

BOOTSTRAP, FOLDER = sys.argv[1], Path(sys.argv[2])
DRIVER = os.getpgid(0)
"""Python and the JVM; workers are in a process group of their own and end with the JVM."""
BATCH_BYTES = 6_000
COPIES = "copies"
COMMITS = {
    "before the first commit": INGESTED[0],
    "between tables": INGESTED[2],
    "after the last commit": INGESTED[-1],
}
PYTHON_FAULTS = ("planner", "worker", "mid-file")
STEPS = ("after the offsets", "mid-task", *COMMITS, "before Spark's commit log")


@dataclass
class Fault:
    """What happens, at most once at each step."""

    folder: Path
    driver: int
    name: str = "none"

    def is_due(self, step: str) -> bool:
        """Whether something happens at a step; from then on it has happened."""
        if self.name not in (step, COPIES) or self.mark(step).exists():
            return False
        self.mark(step).write_text(step)
        return True

    def mark(self, step: str) -> Path:
        return self.folder / f"{step}.mark"

    def at_driver_step(self, step: str) -> None:
        """Kill the driver, or copy what a killed one would leave."""
        if self.is_due(step):
            if self.name != COPIES:
                os.killpg(self.driver, signal.SIGKILL)
            with suppress(shutil.Error):  # a temporary file of a worker that goes on was renamed meanwhile
                shutil.copytree(self.folder / COPIES, self.folder / step)

    def kill_python(self, step: str) -> None:
        """Kill this planner or worker."""
        if self.name != COPIES and self.is_due(step):
            os.kill(os.getpid(), signal.SIGKILL)


FAULT = Fault(FOLDER, DRIVER)


def parent(pid: int) -> int:
    """The parent of a process: for the daemon that forks workers it is the JVM."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def die_in_a_file(fault: Fault) -> None:
    """Kill this worker when the rows of a file are written but not its footer."""
    write_table = pq.ParquetWriter.write_table

    def dying(self: pq.ParquetWriter, *arguments: Any, **options: Any) -> None:
        write_table(self, *arguments, **options)
        fault.kill_python("mid-file")

    pq.ParquetWriter.write_table = dying


class FaultyReader(LimitedTopicStream):
    """Dies while planning or reading."""

    def __init__(self, options: ReadOptions, fault: Fault = FAULT) -> None:
        super().__init__(options)
        self.fault = fault

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.options, self.fault)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        if start != end:
            self.fault.at_driver_step("after the offsets")
            self.fault.kill_python("planner")
        return super().partitions(start, end)


class FaultyWriter(TablesStreamWriter):
    """Dies while writing or committing."""

    def __init__(self, options: WriteOptions, fault: Fault) -> None:
        super().__init__(options)
        self.fault = fault

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        if self.fault.name == "mid-file":
            die_in_a_file(self.fault)
        written = super().write(iterator)
        self.fault.at_driver_step("mid-task")
        self.fault.kill_python("worker")
        if self.fault.name != COPIES and self.fault.is_due("executor"):
            os.kill(parent(os.getppid()), signal.SIGKILL)
        return written

    def committed(self, messages: Sequence[WriterCommitMessage | None], number: int) -> None:
        append, fault = Dataset.append, self.fault

        def dying(self: Dataset, table: Table, *arguments: Any, **options: Any) -> bool:
            for step in STEPS[2:4]:
                if table == COMMITS[step]:
                    fault.at_driver_step(step)
            done = append(self, table, *arguments, **options)
            if table == COMMITS["after the last commit"]:
                fault.at_driver_step("after the last commit")
            return done

        Dataset.append = dying  # type: ignore[method-assign]
        try:
            super().committed(messages, number)
        finally:
            Dataset.append = append  # type: ignore[method-assign]
        self.fault.at_driver_step("before Spark's commit log")


class FaultySource(DefaultSource):
    """Replaces ``odradek``."""

    fault = FAULT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return FaultyReader(read_options(self.options), self.fault)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        return FaultyWriter(write_options(self.options, schema.names, overwrite=overwrite), self.fault)


def ingest(session: SparkSession, dataset: str, fault: str) -> None:
    """Ingest everything that is in the topic."""
    FAULT.name = fault
    session.dataSource.register(FaultySource)  # pickles the class with its fault
    given = settings(BOOTSTRAP, FOLDER / dataset, max_bytes_per_trigger=BATCH_BYTES)
    run_ingest(session, given, once=True, say=lambda line: print(line, flush=True))


def verify(session: SparkSession, dataset: str) -> None:
    print(run_verify(session, str(FOLDER / dataset)).text(), flush=True)


def ingest_copies(session: SparkSession) -> None:
    """Copy a dataset at every step of a batch that is not the first, and continue from each copy."""
    ingest(session, COPIES, "none")
    fill(BOOTSTRAP, records(60, first=60, partitions=2))
    ingest(session, COPIES, COPIES)
    for step in STEPS:
        # every record in the tables is there once, even between tables
        seen = offsets(FOLDER / step)
        assert len(seen) == len(set(seen)) and set(seen) < set(every(120, 2))  # noqa: PT018
        ingest(session, step, "none")
    verify(session, STEPS[-1])


def main(faults: list[str]) -> None:
    if "executor" in faults:
        session = local_session("killed", "local-cluster[1,2,1024]", SMALL)
    else:
        session = local_session("killed", "local[2]", SMALL)
    run.BACKOFF_S = 0.1
    for fault in faults:
        if fault == COPIES:
            ingest_copies(session)
        else:
            dataset = fault if fault in PYTHON_FAULTS else "dataset"
            ingest(session, dataset, fault)
            verify(session, dataset)
    session.stop()


if __name__ == "__main__":
    main(sys.argv[3:])
