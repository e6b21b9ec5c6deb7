"""``odradek spark`` without Java: reported in one line. No JVM is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from spark_dataset import Push, ingested
from spark_topics import TOPIC

from odradek.testing import RunningHost

NO_JAVA = "odradek: no Java found: the pipeline needs Java 17 or newer. Install it, or correct JAVA_HOME\n"


@pytest.fixture
def without(tmp_path: Path) -> dict[str, str]:
    """An environment without Java."""
    empty = tmp_path / "bin"
    empty.mkdir()
    outside = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    path = os.pathsep.join(each for each in sys.path if each)
    return outside | {"PATH": str(empty), "PYTHONPATH": path}


def odradek_command(environment: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odradek", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=environment,
        check=False,
    )


def arguments(command: str, host: RunningHost, dataset: Path) -> list[str]:
    """A command line with an existing dataset."""
    ingested(str(dataset), [Push(client=1, value=1.0)])
    source = ["--bootstrap-server", host.bootstrap, "--topic", TOPIC] if command in ("ingest", "run") else []
    return ["spark", command, *source, "--dataset", str(dataset)]


@pytest.mark.parametrize("command", ["ingest", "run", "verify"])
def test_without_java_one_line_reports_it(
    command: str, without: dict[str, str], host: RunningHost, tmp_path: Path
) -> None:
    done = odradek_command(without, *arguments(command, host, tmp_path / "tables"))

    assert (done.returncode, done.stdout, done.stderr) == (1, "", NO_JAVA)


def test_queries_are_answered_without_java(without: dict[str, str], tmp_path: Path) -> None:
    ingested(str(tmp_path / "tables"), [Push(client=1, value=1.0)])

    done = odradek_command(
        without, "spark", "query", "clients", "--dataset", str(tmp_path / "tables"), "--format", "json"
    )

    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["pushes"] == 1


def test_the_demo_checks_java_before_it_starts_anything(without: dict[str, str]) -> None:
    done = odradek_command(without, "demo", "--spark", "--seconds", "3")

    assert (done.returncode, done.stdout, done.stderr) == (
        1,
        "",
        NO_JAVA.replace("no Java found: the pipeline", "--spark"),
    )
