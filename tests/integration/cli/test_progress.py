"""Progress of commands that take more than two seconds, on a terminal and in a pipe."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.cli.progress import ERASE

pytestmark = pytest.mark.ci

CONFIG = "client.properties"


@pytest.fixture
def command(tmp_path: Path) -> Iterator[list[str]]:
    """A command that waits three seconds for a broker that never answers."""
    config = tmp_path / CONFIG
    config.write_text("request.timeout.ms=3000\n")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        options = ["--bootstrap-server", address, "--command-config", str(config), "--list"]
        yield [sys.executable, "-m", "odradek", "topics", *options]


def test_a_terminal_shows_what_is_waited_for_and_then_the_error(tmp_path: Path, command: list[str]) -> None:
    (tmp_path / CONFIG).write_text("request.timeout.ms=5000\n")

    shown = on_a_terminal(command)

    address = command[5]
    seconds = re.findall(re.escape(f"{ERASE}waiting for {address}, ") + r"(\d+) s", shown)
    assert seconds[0] >= "2", shown
    assert seconds == sorted(seconds)
    assert shown.endswith(f"{ERASE}Error while executing topic command : {address}: no answer within 5 s\r\n")


def test_a_pipe_has_the_error_only(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert done.stdout == ""
    assert done.stderr == f"Error while executing topic command : {command[5]}: no answer within 3 s\n"


def on_a_terminal(command: list[str]) -> str:
    """The output of a command whose stdout and stderr are a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # Linux reports the end of the other side as an error
            while data := os.read(ours, 4096):
                shown += data
        process.wait(60)
    os.close(ours)
    return shown.decode()
