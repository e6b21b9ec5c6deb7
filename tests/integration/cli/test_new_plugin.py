"""The plugin written by ``odradek new-plugin`` passes its own tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.cli.main import run

pytestmark = pytest.mark.ci

ROOT = Path(__file__).parents[3]


def test_its_tests_pass_unchanged(tmp_path: Path) -> None:
    run(["new-plugin", "ship", "--directory", str(tmp_path)])

    finished = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT / "host/src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert finished.returncode == 0, finished.stdout
    assert " failed" not in finished.stdout
