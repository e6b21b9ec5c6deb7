"""A short soak test: the memory of every process of host and pipeline while clients push."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from process_memory import MemoryWatch, ProcessMemory, role_of
from soaked import Plan, soak

GROWTH_MAX = 1.3
SECONDS = 80.0
"""Measured; Spark's start and the rest of the topic come in addition."""


def test_growth_is_the_last_sixth_divided_by_the_second() -> None:
    sizes = [900, 500, 100, 110, 90, 400, 400, 400, 400, 150, 200, 210]
    process = ProcessMemory(1, "any", [float(at_s) for at_s in range(12)], sizes)

    growth = process.growth

    assert process.life_s == 11
    assert growth == 205 / 105


@pytest.mark.parametrize(
    ("command", "role"),
    [
        ("python -m odradek serve --set data.dir=data", "host"),
        ("python -m odradek.process.worker_process", "payload worker"),
        ("python -m odradek spark ingest --dataset tables", "driver"),
        ("/usr/bin/java -cp odradek org.apache.spark.deploy.SparkSubmit", "JVM"),
        ("python -m pyspark.daemon pyspark.worker", "Python worker"),
        ("python -m pyspark.daemon pyspark.sql.worker.create_data_source", "planner create_data_source"),
        ("bash bin/spark-submit", ""),
    ],
)
def test_roles_are_recognized_by_the_command_line(command: str, role: str) -> None:
    found = role_of(command.split())

    assert found == role


def test_only_the_processes_under_the_roots_are_watched() -> None:
    watch = MemoryWatch([os.getpid()])
    idle = [sys.executable, "-c", "import sys; sys.stdin.read()", "odradek", "serve"]

    with subprocess.Popen(idle, stdin=subprocess.PIPE) as host:
        watch.sample(0.0)
        watch.sample(4.0)
        host.communicate()

    (memory,) = (each for each in watch.long_lived(4.0) if each.pid == host.pid)
    assert memory.role == "host"
    assert watch.totals()["host"] > 0


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_memory_stays_flat_and_every_push_is_in_the_tables(tmp_path: Path) -> None:
    plan = Plan(seconds=SECONDS, rate=100, trigger_s=5.0, sample_s=1.0)

    found = soak(plan, tmp_path)

    growths = {f"{each.role} {each.pid}": each.growth for each in found.processes}
    assert {name: growth for name, growth in growths.items() if growth > GROWTH_MAX} == {}
    assert {"host", "payload worker", "driver", "JVM"} <= {each.role for each in found.processes}
    assert 0 < found.accepted <= found.in_topic <= found.sent
    assert (found.in_table, found.distinct) == (found.in_topic, found.in_topic)
    assert (found.points, found.dead_letters) == (found.points_announced, 0)
