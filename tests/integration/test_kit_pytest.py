"""The pytest plugin, as another project uses it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci

SOURCES = Path(__file__).parents[2] / "host" / "src"
ASKS_NOTHING = """
import sys
NEEDLESS = ("odradek.programs", "odradek.net", "odradek.broker")
if sys.version_info < (3, 14):  # from there on, pytest loads asyncio by itself, because pdb does
    NEEDLESS += ("asyncio",)
LOADED = [name for name in sys.modules if name.startswith(NEEDLESS)]
def test_nothing_is_loaded():
    assert LOADED == []
"""
USES_A_HOST = """
import sys
def test_a_host(odradek_host):
    assert odradek_host.topics.names() == []
    loader = sys.modules["odradek.programs.host"].__spec__.loader
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

MISSES_A_FAULT = """
def test_fault(odradek_host):
    odradek_host.fault("Produce", client_id="other", drop="before")
def test_optional(odradek_host):
    odradek_host.fault("Produce", drop="before", optional=True)
def test_removed(odradek_host):
    odradek_host.fault("Produce", drop="before", times=None).remove()
def test_failed(odradek_host):
    odradek_host.fault("Produce", drop="before")
    assert 1 == 2
def test_skipped(odradek_host):
    import pytest
    odradek_host.fault("Produce", drop="before")
    pytest.skip("later")
"""
SHARES_A_HOST = """
import socket, struct
SEEN = []
def ask(host):
    with socket.create_connection(host.address) as client:
        body = struct.pack(">hhih1s", 18, 0, 1, 1, b"a")
        client.sendall(struct.pack(">i", len(body)) + body)
        client.recv(1)
def test_first(odradek_session_host):
    SEEN.append(odradek_session_host)
    odradek_session_host.topics.create("kept")
    odradek_session_host.fault("Produce", drop="before")
    ask(odradek_session_host)
    assert len(odradek_session_host.requests) == 1
def test_second(odradek_session_host, odradek_session_hosts, odradek_host):
    assert SEEN == [odradek_session_host]
    assert odradek_session_host.topics.names() == ["kept"]
    assert (odradek_session_host.faults, len(odradek_session_host.requests)) == ([], 0)
    assert odradek_session_hosts(num_partitions=3) is not odradek_session_host is not odradek_host
"""
NOT_AWAITED = """
import asyncio
def test_forgets(odradek_host):
    async def use():
        odradek_host.telemetry.wait_for("x")
    asyncio.run(use())
"""


def ran(folder: Path, test: str) -> str:
    """The end of pytest's output in a project with one test file."""
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(folder), str(folder)]
    command += ["-p", "no:cacheprovider", "-p", "no:timeout", "-p", "no:anyio"]  # anyio imports asyncio
    if not installed():
        command += ["-p", "odradek.testing.pytest_plugin"]
    environment = os.environ | {"PYTHONPATH": str(SOURCES), "COLUMNS": "200"}
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
    assert "arrivals.py" not in printed, "the frames of the kit are shown"
    assert "subscriptions: none, so clients have nothing to push" in printed


def test_a_fault_without_a_hit_fails_its_test(tmp_path: Path) -> None:
    printed = ran(tmp_path, MISSES_A_FAULT)

    assert "3 failed, 1 passed, 1 skipped" in printed
    for name, reason in (("fault", "FaultNotHit"), ("removed", "FaultNotHit"), ("failed", "assert 1 == 2")):
        assert re.search(rf"FAILED \S+::test_{name} - .*{reason}", printed)
    assert "\n  Produce client_id=other drop=before (0 of 1)\n" in printed
    assert "clients: none has connected" in printed
    assert "if that may happen, say fault(..., optional=True)" in printed
    assert "pytest_plugin.py" not in printed


def test_a_host_of_the_session_serves_all_tests(tmp_path: Path) -> None:
    printed = ran(tmp_path, SHARES_A_HOST)

    assert "1 failed, 1 passed" in printed
    assert re.search(r"FAILED \S+::test_first - .*FaultNotHit", printed)


def test_a_forgotten_await_fails_its_test(tmp_path: Path) -> None:
    printed = ran(tmp_path, NOT_AWAITED)

    assert "1 failed, 1 warning" in printed
    assert "RuntimeError: not awaited: the wait for a data point of metric x" in printed
