"""Python workers that are forked from a server, without Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from odradek_spark.prefork import driver
from odradek_spark.prefork.driver import Prefork, forked_workers

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the server runs on Linux only"),
    pytest.mark.ci,
]
PATIENCE_S = 60.0
WORKER = """
import json, os, sys
said = sys.stdin.read()
print(json.dumps({
    "parent": os.getppid(), "arguments": sys.argv[1:], "name": __name__, "folder": os.getcwd(), "said": said,
    "path": os.environ["PYTHONPATH"], "was": "pyarrow" in sys.modules, "argument": os.environ.get("GIVEN"),
    "pyspark": __import__("pyspark").__file__,
}))
sys.exit(3)
"""
SLEEPER = """
import os, signal, sys, time
print(os.getpid(), flush=True)
time.sleep(300)
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules that the tests run."""
    folder = tmp_path_factory.mktemp("modules")
    (folder / "a_worker.py").write_text(WORKER)
    (folder / "a_sleeper.py").write_text(SLEEPER)
    (folder / "a_fault.py").write_text("raise ValueError('it broke')")
    return folder


@contextmanager
def running() -> Iterator[Prefork]:
    """A server, until the end of ``with``."""
    server = driver.started()
    assert server is not None
    assert server.process.stdin is not None
    try:
        yield server
    finally:
        server.process.stdin.close()
        server.process.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def server() -> Iterator[Prefork]:
    with running() as started:
        yield started


def environment(modules: Path, **more: str) -> dict[str, str]:
    """As Spark's: its zip files come first."""
    import pyspark

    zips = Path(pyspark.__file__).parent / "python" / "lib"
    path = [*map(str, sorted(zips.glob("*.zip"))), str(modules), os.environ.get("PYTHONPATH", "")]
    assert len(path) > 3, "PySpark has no zip files any more"
    return os.environ | {"PYTHONPATH": os.pathsep.join(path)} | more


def run(server: Prefork, modules: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the program that stands in for Python."""
    return subprocess.run(
        [server.python, *arguments],
        env=environment(modules, **more),
        cwd=modules,
        input="hello",
        text=True,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )


def said(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def until(true: Any) -> None:
    end_s = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < end_s, "in vain"
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_worker_is_forked_and_is_like_one_that_python_starts(server: Prefork, modules: Path) -> None:
    done = run(server, modules, "-m", "a_worker", "one", "two", GIVEN="yes")

    found = said(done)
    assert done.returncode == 3
    assert done.stderr == ""
    assert found["parent"] == server.process.pid
    assert found["was"]
    assert (found["name"], found["arguments"]) == ("__main__", ["one", "two"])
    assert (found["said"], found["folder"], found["argument"]) == ("hello", str(modules), "yes")
    assert ".zip" not in found["path"] + found["pyspark"]
    assert found["path"].split(os.pathsep)[0] == str(modules)


def test_the_error_of_a_worker_is_shown(server: Prefork, modules: Path) -> None:
    done = run(server, modules, "-m", "a_fault")

    assert done.returncode == 1
    assert "ValueError: it broke" in done.stderr


def test_other_arguments_are_run_by_python_itself(server: Prefork, modules: Path) -> None:
    done = run(server, modules, "-c", "import os, sys; print(os.getppid(), sys.executable)")

    parent, executable = done.stdout.split()
    assert int(parent) == os.getpid()
    assert executable == sys.executable


def test_without_a_server_python_starts_the_worker(modules: Path) -> None:
    with running() as server:
        server.process.kill()
        server.process.wait()

        done = run(server, modules, "-m", "a_worker")

    found = said(done)
    assert done.returncode == 3
    assert found["parent"] == os.getpid()
    assert not found["was"]
    assert ".zip" not in found["pyspark"]


def sleeper(server: Prefork, modules: Path) -> tuple[subprocess.Popen[str], int]:
    """A client, and the process id of its worker, which sleeps."""
    client = subprocess.Popen(
        [server.python, "-m", "a_sleeper"],
        env=environment(modules),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert client.stdout is not None
    return client, int(client.stdout.readline())


def test_a_worker_ends_with_its_client(server: Prefork, modules: Path) -> None:
    client, worker = sleeper(server, modules)

    client.terminate()

    until(lambda: not is_running(worker))
    client.communicate(timeout=PATIENCE_S)


def test_a_client_ends_with_its_worker(server: Prefork, modules: Path) -> None:
    client, worker = sleeper(server, modules)

    os.kill(worker, signal.SIGKILL)

    assert client.wait(PATIENCE_S) == 1
    client.communicate()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["the worker first", "the client first"])
def test_a_worker_and_its_client_may_end_at_once(modules: Path, order: tuple[int, int]) -> None:
    with running() as server:
        client, worker = sleeper(server, modules)
        os.kill(server.process.pid, signal.SIGSTOP)
        for each in order:
            os.kill((worker, client.pid)[each], signal.SIGKILL)
            time.sleep(0.05)  # the kernel reports the ends in this order
        os.kill(server.process.pid, signal.SIGCONT)
        client.communicate(timeout=PATIENCE_S)

        assert run(server, modules, "-m", "a_worker").returncode == 3
        assert server.process.poll() is None
    assert server.process.returncode == 0


@pytest.mark.parametrize("body", [b"", b"\x00\x00\x00\x02[]", b"\xff\xff\xff\xff"])
def test_a_malformed_request_harms_nobody(server: Prefork, modules: Path, body: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(server.folder / "socket"))
        client.settimeout(PATIENCE_S)
        if body:
            socket.send_fds(client, [body], [0, 1, 2])
        client.shutdown(socket.SHUT_WR)
        assert client.recv(1) == b""

    assert run(server, modules, "-m", "a_worker").returncode == 3


def test_the_server_and_its_folder_end_with_the_driver() -> None:
    with running() as server:
        assert Path(server.python).exists()

    assert server.process.returncode == 0
    assert not server.folder.exists()


def test_nothing_is_started_where_no_program_can_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(tmp_path))
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.X_OK)

    assert driver.started() is None


def test_nothing_is_started_if_the_path_of_the_socket_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    monkeypatch.setattr(tempfile, "mkdtemp", lambda prefix: str(folder))

    assert driver.started() is None


@pytest.mark.parametrize(
    ("python", "master"),
    [
        ("/opt/other/python", "local[*]"),
        (sys.executable, "local-cluster[2,1,1024]"),
        (sys.executable, "spark://localhost:7077"),
    ],
)
def test_a_python_that_was_chosen_and_that_of_a_cluster_are_kept(
    server: Prefork, monkeypatch: pytest.MonkeyPatch, python: str, master: str
) -> None:
    monkeypatch.setattr(driver, "shared", lambda: server)
    monkeypatch.setenv("PYSPARK_PYTHON", python)
    with forked_workers(master):
        assert os.environ["PYSPARK_PYTHON"] == python


def test_the_environment_is_as_before_afterwards(server: Prefork, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "shared", lambda: server)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON", raising=False)
    with forked_workers("local[2]"):
        assert os.environ["PYSPARK_PYTHON"] == os.environ["PYSPARK_DRIVER_PYTHON"] == server.python

    assert os.environ["PYSPARK_PYTHON"] == sys.executable
    assert "PYSPARK_DRIVER_PYTHON" not in os.environ
