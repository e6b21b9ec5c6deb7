"""The pytest plugin, as another project uses it."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "host" / "src"
ASKS_NOTHING = """
import sys
LOADED = [name for name in sys.modules if name.startswith(("odradek.server", "odradek.broker", "asyncio"))]
def test_nothing_is_loaded():
    assert LOADED == []
"""
USES_A_HOST = """
import sys
def test_a_host(odradek_host):
    assert odradek_host.topics.names() == []
    loader = sys.modules["odradek.server.host"].__spec__.loader
    assert type(loader).__name__ == "SourceFileLoader", "pytest rewrites the host"
"""
FAILS = """
import threading
def test_fails(odradek_host, odradek_hosts):
    odradek_hosts()
    assert odradek_host.bootstrap == "somewhere else"
def test_nothing_is_left():
    assert [thread.name for thread in threading.enumerate()] == ["MainThread"]
"""
MISSES = """
def test_waits_in_vain(odradek_host):
    odradek_host.telemetry.wait_for("nothing", timeout_s=0)
"""


def ran(folder: Path, test: str) -> str:
    """The end of pytest's output in a project with one test file."""
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder), str(folder)]
    command += ["-p", "no:cacheprovider", "-p", "no:timeout"]
    if not installed():
        command += ["-p", "odradek.testing.pytest_plugin"]
    environment = os.environ | {"PYTHONPATH": str(SOURCES)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout + done.stderr


def installed() -> bool:
    """Whether the distribution is installed, not only its source folder on the path."""
    return any(point.value == "odradek.testing.pytest_plugin" for point in entry_points(group="pytest11"))


def test_a_session_without_a_host_does_not_import_it(tmp_path: Path) -> None:
    assert "1 passed" in ran(tmp_path, ASKS_NOTHING)


def test_the_host_is_not_rewritten(tmp_path: Path) -> None:
    assert "1 passed" in ran(tmp_path, USES_A_HOST)


def test_a_failure_does_not_affect_the_next_test(tmp_path: Path) -> None:
    printed = ran(tmp_path, FAILS)

    assert "1 failed, 1 passed" in printed


def test_missing_data_is_explained_in_the_report(tmp_path: Path) -> None:
    printed = ran(tmp_path, MISSES)

    assert "NothingCame: no data point of metric nothing of client (any) within 0 s" in printed
    assert "subscriptions: none, so clients have nothing to push" in printed
