"""The four lines on the oldest and the newest Spark: ``pip install``, and nothing else.

By one command: ``pytest -m spark plugins/spark/tests/test_spark_versions.py``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from ingested import every, is_exactly
from spark_topics import fill, records

import odradek.testing

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]
ROOT = Path(__file__).parents[3]
PROJECTS = (str(ROOT), str(ROOT / "plugins/tables"), str(ROOT / "plugins/spark"))
PROGRAM = Path(__file__).with_name("four_lines.py")
TOPIC = "__client_telemetry"


@pytest.mark.parametrize("version", ["4.1.*", "4.2.*", ">=4.3,<5"])
def test_the_four_lines_run(version: str, tmp_path: Path) -> None:
    python = str(tmp_path / "venv/bin/python")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    wanted = version if version.startswith(">") else f"=={version}"
    install = [python, "-m", "pip", "install", "-q", *PROJECTS, f"pyspark[connect]{wanted}"]
    installed = subprocess.run(install, capture_output=True, text=True, check=False)
    if "No matching distribution found for pyspark" in installed.stderr:
        pytest.skip("no package index answers, or it has no such Spark")
    assert installed.returncode == 0, installed.stderr
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    with odradek.testing.host(telemetry_durability="log", telemetry_topic_partitions=2) as host:
        fill(host.bootstrap, records(40, partitions=2), TOPIC)
        done = subprocess.run(
            [python, PROGRAM, "odradek", host.bootstrap, TOPIC, tmp_path, ""],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=environment | {"PYSPARK_PYTHON": python},
            check=False,
        )

    assert done.returncode == 0, done.stdout + done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert (said["first"], said["points"], said["rows"]) == (40, 40, [40, 120])
    if version != "4.1.*":  # without limits a new checkpoint repeats the whole topic, and adds nothing
        assert "[ODRADEK_TABLE_CONFLICT]" in said["new checkpoint"]
    assert is_exactly(tmp_path / "tables", every(40, 2))
