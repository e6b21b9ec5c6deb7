"""A program in a process of its own, for the length of a test."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

STOP_S = 60.0


def same_imports() -> dict[str, str]:
    """An environment in which a program finds the modules that this process finds."""
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@contextmanager
def child_process(
    command: Sequence[str | Path], log: Path, env: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Run a program, with its output in a file. Terminate it at the end; kill it if it does not stop."""
    with log.open("w") as output:
        process = subprocess.Popen(command, env=env, stdout=output, stderr=output, text=True)
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
