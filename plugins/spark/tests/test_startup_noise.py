"""The output of a starting JVM."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.ci

PROGRAM = """
import subprocess, sys, threading
from odradek_spark.ingest.startup_noise import without_noise
child = "import sys; sys.stderr.write('WARNING: Using incubator modules: x\\\\nERROR of Java\\\\nnot ended')"
with without_noise():
    started = subprocess.Popen([sys.executable, "-c", child])
    print("meanwhile", file=sys.stderr)
started.wait()
for each in threading.enumerate():
    if each.name == 'stderr of Java':
        each.join(20)
print("afterwards", file=sys.stderr)
"""


def test_errors_are_shown_and_noise_is_not() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)

    assert sorted(done.stderr.replace("not ended", "not ended\n").splitlines()) == [
        "ERROR of Java",
        "afterwards",
        "meanwhile",
        "not ended",
    ]
