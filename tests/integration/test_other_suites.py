"""Suites of other projects pass against a host, but for what is known."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest
from contrib.compat.__main__ import SUITES, TOOLS

from support.reference_page import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(1_800)]


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_a_suite_passes(suite: str) -> None:
    tool = TOOLS[SUITES[suite]["language"]]
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")

    done = subprocess.run(
        [sys.executable, "-m", "contrib.compat", suite], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
