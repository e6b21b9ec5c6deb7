"""One Spark session for all tests of the pipeline: starting one costs as much as hundreds of tests."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import odradek.testing
from odradek.testing import RunningHost

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRITE_ARCHIVE = Path(__file__).with_name("class_archive.py")


@pytest.fixture(scope="module")
def host() -> Iterator[RunningHost]:
    """A host with an empty telemetry topic of one partition."""
    from spark_topics import TOPIC

    with odradek.testing.host() as running:
        running.topics.create(TOPIC)
        yield running


@pytest.fixture(scope="session")
def class_archive() -> Path:
    """The class-data archive, written once and by one process: it costs more than three sessions."""
    from quick_session import archive_path

    archive = archive_path()
    archive.parent.mkdir(parents=True, exist_ok=True)
    with archive.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not archive.exists():
            subprocess.run([sys.executable, str(WRITE_ARCHIVE)], env=environment(), check=True, timeout=900)
    return archive


def environment() -> dict[str, str]:
    """The environment of a Python process that imports what the tests import."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(each for each in sys.path if each)}


@pytest.fixture(autouse=True)
def quick_jvms(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the JVMs that a test of Spark starts find the class-data archive."""
    if request.node.get_closest_marker("spark"):
        request.getfixturevalue("class_archive")
        from quick_session import VARIABLE, quick_start

        monkeypatch.setenv(VARIABLE, quick_start())


@pytest.fixture(scope="session")
def spark(class_archive: Path) -> Iterator[SparkSession]:
    """A local session of two cores."""
    from quick_session import VARIABLE, local_session
    from small_session import SMALL

    with pytest.MonkeyPatch.context() as patch:  # of Python workers, not of other programs that tests start
        patch.setenv("PYTHONPATH", environment()["PYTHONPATH"])
        session = local_session("tests", "local[2]", SMALL)
    os.environ.pop(VARIABLE, None)  # other JVMs have other classes
    yield session
    session.stop()
