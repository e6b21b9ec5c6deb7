"""kill -9 of the host during ingest: acknowledged records are read once, over a new connection to the same
host.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ingested import every, is_exactly
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark_topics import TOPIC, fill, options, records

from odradek_spark.sink.commit import Batch, commit
from odradek_spark.sink.write_options import WriteOptions
from odradek_spark.sink.written import Written, write_batches
from odradek_spark.source.limited_stream import LimitedTopicStream
from odradek_tables.dataset import Dataset

pytestmark = pytest.mark.ci

READY = "odradek ready listeners=PLAINTEXT://"


@contextmanager
def served(folder: Path, address: str) -> Iterator[str]:
    """``odradek serve``, killed at the end; its address."""
    settings = [f"listeners=PLAINTEXT://{address}", f"data.dir={folder}"]
    command = [
        sys.executable,
        "-m",
        "odradek",
        "serve",
        *(part for each in settings for part in ("--set", each)),
    ]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as host:
        assert host.stdout is not None
        try:
            line = host.stdout.readline()
            assert line.startswith(READY), line
            yield line.removeprefix(READY).split()[0]
        finally:
            host.kill()


def ingest(stream: LimitedTopicStream, dataset: Dataset, start: dict[str, Any], batch: int) -> dict[str, Any]:
    """Run one batch as Spark does; return its end."""
    end = stream.latestOffset(start, ReadAllAvailable())
    written = Written("query")
    rows = (each for piece in stream.partitions(start, end) for each in stream.read(piece))
    write_batches(rows, WriteOptions(root=dataset.root), written)
    commit(dataset, Batch.of([written], batch))
    return end


def test_acknowledged_records_are_read_once(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path / "tables"))
    dataset.create()
    with served(tmp_path / "host", "127.0.0.1:0") as address:
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result(20)
        stream = LimitedTopicStream(options(address, startingOffsets="earliest"))
        fill(address, records(20, partitions=2))
        reached = ingest(stream, dataset, stream.initialOffset(), 0)
        fill(address, records(10, first=20, partitions=2))
    with served(tmp_path / "host", address):
        fill(address, records(4, first=30, partitions=2))

        reached = ingest(stream, dataset, reached, 1)

    assert reached == {TOPIC: {"0": 17, "1": 17}}
    assert is_exactly(tmp_path / "tables", every(34, 2))
