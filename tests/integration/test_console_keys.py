"""``odradek top`` on a terminal: pictures, keys, and its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from odradek.testing import RunningHost
from support.waiting import wait_until

pty = pytest.importorskip("pty")
pytestmark = [pytest.mark.timeout(120), pytest.mark.ci]
PATIENCE_S = 60
PROGRAM = "from odradek_console.terminal.top import top; top()"


def test_keys_change_the_order_and_end_it(odradek_hosts: Callable[..., RunningHost]) -> None:
    host = odradek_hosts(telemetry_durability="log")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", PROGRAM, "--bootstrap-server", host.bootstrap, "--interval", "60s"]
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "60", "LINES": "24"}
    seen = bytearray()

    def shows(text: bytes) -> bool:
        with contextlib.suppress(OSError):
            seen.extend(os.read(ours, 65_536))
        return text in seen

    try:
        os.set_blocking(ours, False)
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, env=environment) as process:
            try:
                wait_until(lambda: shows(b"by findings"), lambda: seen, PATIENCE_S)
                os.write(ours, b"s")
                wait_until(lambda: shows(b"by records"), lambda: seen, PATIENCE_S)
                os.write(ours, b"q")
                wait_until(lambda: shows(b"") and process.poll() is not None, lambda: seen, PATIENCE_S)
            finally:
                process.kill()
    finally:
        os.close(ours)
        os.close(theirs)

    assert process.returncode == 0
