"""Keep the speed of the machine and its disk out of the tests, and what nobody has to close.

SQLite and the log sync files that must survive a power failure. No test cuts the power, so files may as well
be in memory: a host starts and stops there in half the time.
"""

from __future__ import annotations

import gc
import os
import signal
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from support.examples import examples

SHARED_MEMORY = Path("/dev/shm")
ROOM_BYTES = 4 << 30
"""More than all tests together write. A container has 64 MiB there by default."""

DESCRIPTORS = Path("/proc/self/fd")
MANY_DESCRIPTORS = 1_000
descriptors_kept = 0
"""Open after the last collection: what is left then belongs to nobody's past, and is not looked for again."""
collections = 0
"""Of all objects, up to the last module after which the rest was excluded."""


def roomy(folder: Path) -> bool:
    """Whether there is room for the files of all tests, and programs among them can be executed."""
    if not os.access(folder, os.W_OK | os.X_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= ROOM_BYTES and not found.f_flag & os.ST_NOEXEC


def keep_files_in_memory() -> None:
    """Set the folder for this process and its children, unless the user has set one."""
    if "TMPDIR" not in os.environ and roomy(SHARED_MEMORY):
        os.environ["TMPDIR"] = tempfile.tempdir = str(SHARED_MEMORY)


def remove_time_limits() -> None:
    """Remove the time limit of Hypothesis examples, whatever profile is in force, and set their number."""
    settings.register_profile(
        "patient",
        settings(),
        max_examples=examples(100),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.load_profile("patient")


class DatabaseInMemory(sqlite3.Connection):
    """It may end with the broker that a test leaves behind; a file must be closed, as Python 3.13 warns."""

    def __del__(self) -> None:
        """Say nothing, where `sqlite3.Connection` warns."""


def let_databases_in_memory_go() -> None:
    """Make every new one a `DatabaseInMemory`."""
    connect: Any = sqlite3.connect  # its overloads are not repeated here

    def connected(database: Any, *arguments: Any, **options: Any) -> Any:
        if database == ":memory:":
            options.setdefault("factory", DatabaseInMemory)
        return connect(database, *arguments, **options)

    sqlite3.connect = connected


def let_programs_be_interrupted() -> None:
    """Undo what a shell does for a command in the background: programs that tests start inherit it, and would
    ignore the SIGINT that a test sends them.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def keep_bytecode() -> None:
    """Programs that tests start, and the processes of pytest, would compile all their modules each time."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the thousands of test objects, which live to the end, from every garbage collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Collect the hosts of past tests when they hold many more files open: nothing else closes these.

    After a module in which Python has looked through all objects, exclude what is left from the next time.
    """
    global collections, descriptors_kept
    grown = (nextitem is None or nextitem.path != item.path) and full_collections() > collections
    if grown or open_descriptors() > descriptors_kept + MANY_DESCRIPTORS:
        gc.collect()
        descriptors_kept = open_descriptors()
    if grown:
        gc.freeze()
        collections = full_collections()


def full_collections() -> int:
    return int(gc.get_stats()[-1]["collections"])


def open_descriptors() -> int:
    """How many files this process has open; 0 where the system does not tell."""
    return sum(1 for _ in DESCRIPTORS.iterdir()) if DESCRIPTORS.is_dir() else 0


def pytest_unconfigure() -> None:
    """Undo this at the end: extension modules complain of objects that are left over."""
    gc.unfreeze()


keep_bytecode()
keep_files_in_memory()
let_databases_in_memory_go()
let_programs_be_interrupted()
remove_time_limits()
