"""The units of ``contrib/systemd`` are started, reloaded and stopped here as systemd does it."""

from __future__ import annotations

import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import odradek.testing
from docs.test_systemd import PROGRAM, UNITS, directives
from odradek.testing import RunningHost
from support.child_process import child_process
from support.deployed import PROGRAM as OURS
from support.deployed import moved, without_rights
from support.waiting import wait_until

pytestmark = pytest.mark.timeout(180)
PATIENCE_S = 100
LISTENERS = 'listeners = ["PLAINTEXT://127.0.0.1:0"]\n'
CONFIGURATIONS = {
    "odradek.service": LISTENERS,
    "odradek-gateway.service": LISTENERS + '"gateway.upstream" = ["{cluster}"]\n"gateway.nodes" = ["0-9"]\n',
    "odradek-forward.service": '[plugins.otlp]\nendpoint = "http://127.0.0.1:9"\n',
}
"""What an operator has written, as little as a program needs."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningHost]:
    with odradek.testing.host(telemetry_durability="log") as host:
        yield host


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    """The socket to which a service of ``Type=notify`` tells its states."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(PATIENCE_S)
        channel.bind(str(tmp_path / "notify"))
        yield channel


class Installed:
    """A unit whose program, configuration and state are in a folder of this machine."""

    def __init__(self, unit: str, cluster: RunningHost, folder: Path) -> None:
        self.unit = directives(unit)
        self.folder = folder
        (folder / "etc").mkdir()
        (folder / "var").mkdir(mode=0o700)
        (path,) = re.findall(r"--config (\S+)", self.unit["ExecStart"])
        self.config = Path(self.here(path))
        self.config.write_text(CONFIGURATIONS[unit].replace("{cluster}", cluster.bootstrap), encoding="utf-8")
        self.environment = os.environ | {
            "NOTIFY_SOCKET": str(folder / "notify"),
            "BOOTSTRAP_SERVER": cluster.bootstrap,
            "TOPIC": "__client_telemetry",
        }

    def here(self, text: str) -> str:
        folders = {"/etc/odradek": self.folder / "etc", "/var/lib": self.folder / "var", PROGRAM: OURS}
        return moved(text, folders, {})

    def command(self, key: str, **variables: str) -> list[str]:
        """A command line of the unit, as systemd reads it: quotes and variables, but no shell."""
        known = self.environment | variables
        line = re.sub(r"\$\{?(\w+)\}?", lambda name: known[name[1]], self.unit[key])
        return without_rights(shlex.split(self.here(line)))


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_starts_reloads_and_stops(
    unit: str, cluster: RunningHost, supervisor: socket.socket, tmp_path: Path
) -> None:
    installed = Installed(unit, cluster, tmp_path)
    log = tmp_path / "log"
    if "ExecStartPre" in installed.unit:
        subprocess.run(installed.command("ExecStartPre"), check=True, timeout=PATIENCE_S, capture_output=True)

    with child_process(installed.command("ExecStart"), log, installed.environment) as service:
        assert supervisor.recv(100) == b"READY=1"
        if "ExecReload" in installed.unit:
            subprocess.run(installed.command("ExecReload", MAINPID=str(service.pid)), check=True)
            wait_until(
                lambda: "configuration reloaded" in log.read_text("utf-8"), lambda: log.read_text("utf-8")
            )
        service.terminate()
        assert supervisor.recv(100) == b"STOPPING=1"
        assert service.wait(PATIENCE_S) == 0

    state = installed.unit.get("StateDirectory")
    assert state is None or any((tmp_path / "var" / state).iterdir())


@pytest.mark.parametrize("unit", UNITS)
def test_a_refused_configuration_is_not_tried_again(unit: str, cluster: RunningHost, tmp_path: Path) -> None:
    installed = Installed(unit, cluster, tmp_path)
    installed.config.write_text('"no.such.key" = 1\n', encoding="utf-8")

    done = subprocess.run(
        installed.command("ExecStart"), env=installed.environment, capture_output=True, timeout=PATIENCE_S
    )

    assert done.returncode == int(installed.unit["RestartPreventExitStatus"])
    assert b"no.such.key" in done.stderr
