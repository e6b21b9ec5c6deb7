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

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from ingested import every, is_exactly
from pyspark.sql.streaming.datasource import ReadAllAvailable
from spark_topics import TOPIC, fill, options, records

from odradek_spark.ingest.commit import commit_batch
from odradek_spark.source.data_source import TopicStreamReader, read_piece
from odradek_spark.source.task import FILE, RangeReport
from odradek_spark.tables.dataset import Dataset
from odradek_spark.tables.files import Manifest

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


def ingest(stream: TopicStreamReader, dataset: Dataset, start: dict[str, int], batch: int) -> dict[str, int]:
    """Run one batch as Spark does; return its end."""
    end = stream.latestOffset(start, ReadAllAvailable())
    found = [
        row
        for piece in stream.partitions(start, end)
        for rows in read_piece(stream.options, piece)
        for row in rows.to_pylist()
    ]
    manifests = [Manifest.parse(row["body"]) for row in found if row["kind"] == FILE]
    reports = [RangeReport.parse(row["body"]) for row in found if row["kind"] != FILE]
    commit_batch(dataset, TOPIC, manifests, reports, batch)
    return end


def test_acknowledged_records_are_read_once(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path / "tables"))
    dataset.create()
    with served(tmp_path / "host", "127.0.0.1:0") as address:
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics([NewTopic(TOPIC, 2)])[TOPIC].result(20)
        stream = TopicStreamReader(options(address, rows="manifests", dataset=dataset.root))
        fill(address, records(20, partitions=2))
        reached = ingest(stream, dataset, stream.initialOffset(), 0)
        fill(address, records(10, first=20, partitions=2))
    with served(tmp_path / "host", address):
        fill(address, records(4, first=30, partitions=2))

        reached = ingest(stream, dataset, reached, 1)

    assert reached == {"0": 17, "1": 17}
    assert is_exactly(tmp_path / "tables", every(34, 2))
