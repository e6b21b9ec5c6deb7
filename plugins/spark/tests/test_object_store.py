"""A dataset in an object store: commits that exclude each other, and workers that need no jar for it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest
from ingested import until
from spark_dataset import Push, commit_ranges, ingested
from spark_topics import TOPIC, fill, records

import odradek.testing
from odradek_spark.ingest.failures import Failure, explain
from odradek_spark.jobs.expire import run_expire, run_vacuum
from odradek_spark.load import live_files
from odradek_spark.sink.dataset_root import check_root
from odradek_tables.dataset import Dataset
from odradek_tables.files import arrow_files
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import POINTS, PUSHES

pytestmark = pytest.mark.timeout(200)
SERVER = shutil.which("moto_server", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
PROGRAM = Path(__file__).with_name("ingest_to_store.py")
ADDRESS = re.compile(r"http://[\d.]+:\d+")
REFUSED = (
    "Spark has no jar for s3:// and cannot store the checkpoint {}/_checkpoints/ingest: choose a folder "
    "that it can write with --checkpoint (the tables themselves need no jar)"
)
LATER = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server in memory."""
    if SERVER is None:
        pytest.skip("no moto_server: pip install 'moto[s3]' flask flask-cors")
    said = tmp_path_factory.mktemp("store") / "said"
    with (
        said.open("w") as out,
        subprocess.Popen([SERVER, "-H", "127.0.0.1", "-p", "0"], stdout=out, stderr=out) as server,
    ):
        try:
            until(lambda: ADDRESS.search(said.read_text()) is not None)
            yield ADDRESS.findall(said.read_text())[0]
        finally:
            server.kill()


@pytest.fixture
def root(store: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """An empty dataset in its own bucket; the environment has its address and credentials."""
    environment = {
        "AWS_ENDPOINT_URL": store,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "any",
        "AWS_SECRET_ACCESS_KEY": "any",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    bucket = "b" + re.sub(r"\W|_", "", request.node.name)[-40:].lower()
    urllib.request.urlopen(urllib.request.Request(f"{store}/{bucket}", method="PUT")).close()
    return f"s3://{bucket}/tables"


def test_tables_in_a_store_work_like_others(root: str) -> None:
    check_root(root)
    dataset = ingested(root, [Push(client=1, value=5.0), Push(client=2, value=6.0, at_s=20)])
    check_root(root)

    with closing(Reader(root)) as reader:
        asked = reader.ask("SELECT client_id, value FROM points ORDER BY value").to_pylist()
    by_polars = pl.read_delta(dataset.uri(POINTS))
    gone = {each.table: each.rows for each in run_expire(root, LATER)}

    assert asked == [{"client_id": "client-1", "value": 5.0}, {"client_id": "client-2", "value": 6.0}]
    assert sorted(by_polars["value"].to_list()) == [5.0, 6.0]
    assert gone == {"points": 2, "pushes": 2}
    assert set(run_vacuum(root).values()) == {0}  # their readers may still need them


def test_of_committers_to_a_store_one_wins(root: str) -> None:
    dataset = Dataset(root)
    dataset.create()

    with ThreadPoolExecutor(4) as pool:
        same = [pool.submit(commit_ranges, dataset, POINTS, [], {0: (0, 9)}) for _ in range(6)]
        others = [pool.submit(commit_ranges, dataset, POINTS, [], {n: (0, 9)}) for n in range(1, 4)]

    assert sorted(each.result() for each in same) == [False] * 5 + [True]
    assert [each.result() for each in others] == [True] * 3
    assert dataset.existing(POINTS).version() == 4


def test_a_file_is_read_with_its_folders_and_without_the_columns_it_lacks(tmp_path: Path) -> None:
    dataset = ingested(str(tmp_path), [Push(client=1, value=5.0), Push(client=2, value=6.0)])
    expected = dataset.existing(POINTS).to_pyarrow_table().select(POINTS.schema.names)
    (path,) = live_files(dataset, POINTS)
    whole = arrow_files(dataset.root, POINTS, [path]).to_table()
    older = pq.ParquetFile(path).read()
    pq.write_table(older.drop_columns(["unit"]), path)

    rows = arrow_files(dataset.root, POINTS, [path]).to_table()

    assert whole.schema == rows.schema == POINTS.schema
    assert whole.drop_columns(["unit"]).to_pylist() == expected.drop_columns(["unit"]).to_pylist()
    assert whole["unit"].to_pylist() == ["", ""]
    assert rows["unit"].to_pylist() == [None, None]


@pytest.mark.parametrize(
    ("said", "message", "is_passing"),
    [
        (': org.apache.hadoop.fs.UnsupportedFileSystemException: No FileSystem for scheme "s3"', "", False),
        (": java.nio.file.AccessDeniedException: b: 503", "AccessDeniedException: b: 503", True),
    ],
)
def test_the_jvms_error_about_a_store_is_reported(said: str, message: str, is_passing: bool) -> None:
    error = RuntimeError(f"An error occurred while calling o75.start.\n{said}\n\tat org.apache.Some.java")

    failure = explain(error, "s3://b/d/_checkpoints/ingest")

    assert failure == Failure(message or REFUSED.format("s3://b/d"), is_passing)


@pytest.mark.spark
def test_workers_write_and_read_a_store_without_a_jar(root: str, tmp_path: Path) -> None:
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(20, partitions=2))

        done = subprocess.run(
            [sys.executable, str(PROGRAM), host.bootstrap, root, str(tmp_path / "notes")],
            capture_output=True,
            text=True,
            timeout=150,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            check=False,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["refused"] == REFUSED.format(root)
    assert said["verified"].endswith("everything is there exactly once")
    assert said["families"] == [["producer", 14, 60]]
    assert Dataset(root).source_offsets(PUSHES, TOPIC, [0, 1]) == {0: 10, 1: 10}
