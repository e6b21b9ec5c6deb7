"""Our services of ``contrib/compose`` are started, asked for their health and stopped as by an engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import odradek.testing
from odradek.testing import RunningHost
from odradek.wire.messages.api_versions import ApiVersionsRequest
from support.child_process import child_process
from support.deployed import PROGRAM, moved, ports_of, without_rights
from support.reference_page import ROOT
from support.waiting import wait_until
from support.wire_client import WireClient

pytestmark = pytest.mark.timeout(180)
FOLDER = ROOT / "contrib/compose"
PATIENCE_S = 100
OURS = [
    (file, name)
    for file in ("compose.yaml", "dashboards.yaml", "gateway.yaml")
    for name, service in yaml.safe_load((FOLDER / file).read_text(encoding="utf-8"))["services"].items()
    if "build" in service
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[RunningHost]:
    """What is Kafka for the gateway."""
    with odradek.testing.host() as host:
        yield host


def service_of(file: str, name: str) -> dict[str, Any]:
    services = yaml.safe_load((FOLDER / file).read_text(encoding="utf-8"))["services"]
    return dict(services[name])


@pytest.mark.parametrize(("file", "name"), OURS)
def test_a_service_starts_becomes_healthy_and_stops(
    file: str, name: str, cluster: RunningHost, tmp_path: Path
) -> None:
    service = service_of(file, name)
    mounted, inside = service["volumes"][0].split(":")[:2]
    (state,) = {volume.split(":")[1] for volume in service["volumes"] if not volume.startswith(".")}
    text = (FOLDER / mounted).read_text(encoding="utf-8").replace("kafka:9092", cluster.bootstrap)
    ports = ports_of(text)
    folders = {state: tmp_path / "data", inside: tmp_path / "odradek.toml"}
    (tmp_path / "odradek.toml").write_text(moved(text, folders, ports), encoding="utf-8")
    command = [str(PROGRAM), *(moved(each, folders, ports) for each in service["command"])]
    health = [moved(each, folders, ports) for each in service["healthcheck"]["test"][2:]]
    (grace,) = re.findall(r"^(\d+)s$", service["stop_grace_period"])
    log = tmp_path / "log"

    with child_process(without_rights(command), log, os.environ | {"HOME": str(tmp_path)}) as process:
        wait_until(lambda: is_healthy(health), lambda: log.read_text("utf-8"), PATIENCE_S)
        published = [each.split(":")[2] for each in service["ports"]]
        for port in published:
            assert port in ports
        with WireClient(("127.0.0.1", ports[published[0]])) as client:
            request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
            assert client.send(request, 3).api_keys
        process.terminate()
        assert process.wait(int(grace) + PATIENCE_S) == 0

    assert any((tmp_path / "data").iterdir())


def is_healthy(arguments: list[str]) -> bool:
    """Whether the health check of the file, a program in Python, says so."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S).returncode == 0
