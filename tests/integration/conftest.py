"""Clients that are built or installed for the tests, in a folder of the user's cache."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

BUILD_TIMEOUT_S = 300
OLD_LIBRDKAFKA = "2.5.3"
"""The oldest version with telemetry (KIP-714), and the strictest about version ranges."""
GO_PROGRAM = Path(__file__).resolve().parents[2] / "contrib" / "go"


def cache_dir() -> Path:
    """``$ODRADEK_CLIENTS_CACHE``, by default in the home directory."""
    named = os.environ.get("ODRADEK_CLIENTS_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "odradek" / "clients"


@contextmanager
def build_folder(name: str) -> Iterator[Path]:
    """A folder of the cache, for one process at a time."""
    folder = cache_dir() / name
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def built(*command: str, cwd: Path | None = None) -> None:
    """Run a build step; if it fails, the tests that need it are skipped."""
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
    )
    if done.returncode:
        lines = (done.stderr + done.stdout).strip().splitlines()
        pytest.skip(f"{' '.join(command[:4])}: {lines[-1] if lines else done.returncode}")


@pytest.fixture(scope="session")
def old_librdkafka() -> str:
    """A Python interpreter with the old confluent-kafka."""
    with build_folder(f"confluent-kafka-{OLD_LIBRDKAFKA}") as folder:
        python = str(folder / "bin" / "python")
        ready = folder / "ready"
        if not ready.exists():
            built(sys.executable, "-m", "venv", "--clear", str(folder))
            built(python, "-m", "pip", "install", "-q", f"confluent-kafka=={OLD_LIBRDKAFKA}")
            ready.touch()
    return python


def built_go(package: str, name: str) -> str:
    """A program of ``contrib/go``."""
    if shutil.which("go") is None:
        pytest.skip("go is not installed")
    with build_folder("franz-go") as folder:
        program = str(folder / name)
        built("go", "build", "-o", program, package, cwd=GO_PROGRAM)
    return program


@pytest.fixture(scope="session")
def franz_go() -> str:
    """Produces with every codec and reads back."""
    return built_go(".", "franz")


@pytest.fixture(scope="session")
def franz_go_telemetry() -> str:
    """Produces and reads until its standard input ends."""
    return built_go("./telemetry", "telemetry")


@pytest.fixture(scope="session")
def kcat() -> str:
    """The program of Debian's package."""
    found = shutil.which("kcat")
    if found is None:
        pytest.skip("kcat is not installed")
    return found
