"""A driver that ingests once and is killed, or kills a planner, worker or executor, at a chosen step.

Usage: ingest_driver.py BOOTSTRAP DATASET FAULT MARK. A fault happens once: the file MARK records that it has.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from ingested import settings
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from odradek_spark.ingest import run
from odradek_spark.ingest.commit import CommitBatch
from odradek_spark.ingest.run import run_ingest
from odradek_spark.ingest.session import archive_path, local_session
from odradek_spark.jobs.verify import run_verify
from odradek_spark.source.data_source import OdradekDataSource, TopicStreamReader
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.schemas import INGESTED, Table

BOOTSTRAP, DATASET, FAULT, MARK = sys.argv[1:5]
DRIVER = os.getpgid(0)
"""Python and the JVM; workers are in a process group of their own and end with the JVM."""
BATCH_BYTES = 6_000


def die(fault: str, group: int, mark: str) -> None:
    """Kill the driver, or this worker, once."""
    if not Path(mark).exists():
        Path(mark).write_text(fault)
        if group:
            os.killpg(group, signal.SIGKILL)
        else:
            os.kill(os.getpid(), signal.SIGKILL)


def parent(pid: int) -> int:
    """The parent of a process: for the daemon that forks workers it is the JVM."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def die_in_a_file(fault: str, mark: str) -> None:
    """Kill this worker when the rows of a file are written but not its footer."""
    write_table = pq.ParquetWriter.write_table

    def dying(self: pq.ParquetWriter, *arguments: Any, **options: Any) -> None:
        write_table(self, *arguments, **options)
        die(fault, 0, mark)

    pq.ParquetWriter.write_table = dying


class FaultyReader(TopicStreamReader):
    """Dies while planning or reading."""

    fault, driver, mark = FAULT, DRIVER, MARK

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        if self.fault == "after the offsets":
            die(self.fault, self.driver, self.mark)
        if self.fault == "planner":
            die(self.fault, 0, self.mark)
        return super().partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if self.fault == "mid-file":
            die_in_a_file(self.fault, self.mark)
        written = list(super().read(partition))
        if self.fault == "mid-task":
            die(self.fault, self.driver, self.mark)
        if self.fault == "worker":
            die(self.fault, 0, self.mark)
        if self.fault == "executor" and not Path(self.mark).exists():
            Path(self.mark).write_text(self.fault)
            os.kill(parent(os.getppid()), signal.SIGKILL)
        yield from written


class FaultySource(OdradekDataSource):
    """Replaces ``odradek``."""

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  Spark's name
        return FaultyReader(self.read_options)


def faulty_commits() -> None:
    """Make the driver die before or after the commits of a batch."""
    commit_ranges, commit_batch = Dataset.commit_ranges, CommitBatch.__call__

    def dying(self: Dataset, table: Table, *arguments: Any) -> bool:
        if (FAULT, table) in (("before the first commit", INGESTED[0]), ("between tables", INGESTED[2])):
            die(FAULT, DRIVER, MARK)
        done = commit_ranges(self, table, *arguments)
        if (FAULT, table) == ("after the last commit", INGESTED[-1]):
            die(FAULT, DRIVER, MARK)
        return done

    def dying_batch(self: CommitBatch, rows: Any, batch_id: int) -> None:
        commit_batch(self, rows, batch_id)
        if FAULT == "before Spark's commit log":
            die(FAULT, DRIVER, MARK)

    Dataset.commit_ranges = dying  # type: ignore[assignment, method-assign]
    CommitBatch.__call__ = dying_batch  # type: ignore[method-assign]


def main() -> None:
    if FAULT == "executor":
        session = local_session("killed", "local-cluster[2,1,1024]")
    else:
        session = local_session("killed", "local[2]", archive=archive_path())
    session.dataSource.register(FaultySource)
    faulty_commits()
    run.BACKOFF_S = 0.1
    given = settings(BOOTSTRAP, Path(DATASET), max_bytes_per_trigger=BATCH_BYTES)
    run_ingest(session, given, once=True, say=lambda line: print(line, flush=True))
    print(run_verify(session, DATASET).text(), flush=True)
    session.stop()


if __name__ == "__main__":
    main()
