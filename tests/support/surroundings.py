"""What tests shall not notice of the machine they run on: how busy it is, and how slow its disk.

SQLite and the log wait for the disk where something has to survive a power failure. No test cuts the power,
so that files may as well be in memory: a host starts and stops there in half of the time.
"""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

SHARED_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""More than all tests together write. A container without further options has 64 MiB there."""


def roomy(folder: Path) -> bool:
    """Whether there is room for the files of all tests, and programs among them may be run."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC


def keep_files_in_memory() -> None:
    """For this process and its children, unless somebody has said where temporary files go."""
    if "TMPDIR" not in os.environ and roomy(SHARED_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(SHARED_MEMORY)


def be_patient() -> None:
    """Let an example of Hypothesis take as long as it takes, whatever profile is in force."""
    settings.register_profile(
        "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
    settings.load_profile("patient")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the thousands of tests, which stay to the end, out of every garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


def pytest_unconfigure() -> None:
    """At the end they go like everything else: extension modules complain of what is left over."""
    gc.unfreeze()


keep_files_in_memory()
be_patient()
