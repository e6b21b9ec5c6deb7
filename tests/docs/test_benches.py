"""The commands of ``tests/bench/README.md`` name benches that exist, and these find what they import."""

from __future__ import annotations

import os
import re
import subprocess
import sys

from support.reference_page import ROOT

TESTS = ROOT / "tests"
COMMAND = re.compile(r"python -m bench\.(\w+)")


def test_each_command_names_a_bench() -> None:
    names = set(COMMAND.findall((TESTS / "bench/README.md").read_text(encoding="utf-8")))

    assert len(names) > 20
    assert [name for name in names if not (TESTS / f"bench/{name}.py").exists()] == []


def test_a_bench_finds_contrib_in_the_folder_above() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", "import bench; import contrib.go_program"]

    assert subprocess.run(command, cwd=TESTS, env=environment, check=False).returncode == 0
