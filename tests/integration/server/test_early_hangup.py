"""SIGHUP before the host is ready. It waits for its file, a named pipe, so that the time is certain."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci

PATIENCE_S = 30
SERVE = (sys.executable, "-m", "odradek", "serve")


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "odradek.toml"
    os.mkfifo(path)
    return path


@contextmanager
def waiting_for(pipe: Path) -> Iterator[None]:
    """The body runs while a host waits for its configuration, which is a file when the host reloads."""
    text = f'listeners = "PLAINTEXT://127.0.0.1:0"\ndata.dir = "{pipe.parent / "data"}"\n'
    with pipe.open("w") as writer:
        yield
        file = pipe.with_suffix(".new")
        file.write_text(text + '[subscriptions.late]\nmetrics = "a"\n')
        file.replace(pipe)
        writer.write(text)


def test_a_hangup_during_the_start_reloads_after_it(pipe: Path) -> None:
    process = subprocess.Popen(
        [*SERVE, "--config", str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with waiting_for(pipe):
        process.send_signal(signal.SIGHUP)

    assert process.stdout is not None
    assert process.stdout.readline().startswith("odradek ready ")
    process.terminate()
    _, errors = process.communicate(timeout=PATIENCE_S)

    assert "configuration reloaded subscriptions=late" in errors
    assert process.returncode == 0


def test_an_ephemeral_host_stops_after_a_hangup_during_its_start(pipe: Path) -> None:
    process = subprocess.Popen(
        [*SERVE, "--ephemeral", "--config", str(pipe)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with waiting_for(pipe):
        process.send_signal(signal.SIGHUP)
    out, errors = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 0, errors
    assert not Path(out.split(" data=")[1].split(" ")[0]).exists()


def test_a_terminal_that_closes_during_the_start_stops_the_host(pipe: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    child, terminal = pty.fork()
    if not child:
        with log.open("w") as stderr:
            os.dup2(stderr.fileno(), 2)
        os.execv(SERVE[0], [*SERVE, "--config", str(pipe)])
    with waiting_for(pipe):
        os.close(terminal)

    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0, log.read_text()
    assert "Traceback" not in log.read_text()
