"""The same pipeline on a cluster of processes and over Spark Connect."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from ingested import every, is_exactly
from spark_topics import TOPIC, fill, records

import odradek.testing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(240)]
PROGRAM = Path(__file__).with_name("ingest_elsewhere.py")


@pytest.mark.parametrize("master", ["local-cluster[2,1,1024]", "connect"])
def test_every_record_is_in_the_tables_once(tmp_path: Path, master: str) -> None:
    with odradek.testing.host() as host:
        host.topics.create(TOPIC, 2)
        fill(host.bootstrap, records(200, partitions=2))

        done = subprocess.run(
            [sys.executable, str(PROGRAM), master, host.bootstrap, str(tmp_path / "d")],
            capture_output=True,
            text=True,
            timeout=200,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)},
            check=False,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    assert is_exactly(tmp_path / "d", every(200, 2))
