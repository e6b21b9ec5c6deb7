"""The states that systemd is told."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.process.supervisor import READY, tell_supervisor
from support.hosts import serving

PATIENCE_S = 30


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A socket as systemd has it, named in the environment."""
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(PATIENCE_S)
        channel.bind(str(path))
        monkeypatch.setenv("NOTIFY_SOCKET", str(path))
        yield channel


@pytest.mark.ci
def test_a_host_says_when_it_is_ready_and_when_it_stops(supervisor: socket.socket, tmp_path: Path) -> None:
    with serving(tmp_path / "data") as serve:
        ready = supervisor.recv(100)
        assert serve.terminate() == 0
        stopping = supervisor.recv(100)

    assert (ready, stopping) == (b"READY=1", b"STOPPING=1")


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="only Linux has sockets without a file")
def test_a_socket_without_a_file_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"odradek-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.settimeout(PATIENCE_S)
        channel.bind("\0" + name)
        monkeypatch.setenv("NOTIFY_SOCKET", "@" + name)

        tell_supervisor(READY)

        assert channel.recv(100) == b"READY=1"


def test_nothing_is_told_without_a_supervisor(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)

    tell_supervisor(READY)

    assert caplog.records == []


def test_a_supervisor_that_does_not_listen_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "gone"))

    with caplog.at_level(logging.WARNING):
        tell_supervisor(READY)

    assert "the supervisor of this process cannot be reached" in caplog.text
