"""``odradek consume`` and ``odradek produce`` while the host restarts."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from odradek.client.admin import AdminClient
from odradek.client.fetch import Reader
from odradek.client.producer import Producer
from odradek.client.resources import NewTopic
from odradek.wire.record import Record
from support.hosts import serving

pytestmark = pytest.mark.ci

PATIENCE_S = 30


def write(bootstrap: str, value: bytes) -> None:
    with AdminClient(bootstrap) as admin:
        Producer(admin).send({("kept", 0): [Record(None, value)]})


def await_records(bootstrap: str, number: int) -> list[bytes | None]:
    """The values in the topic, once there are so many."""
    end_s = time.monotonic() + PATIENCE_S
    with AdminClient(bootstrap) as admin:
        reader = Reader(admin.cluster, {("kept", 0): 0})
        values: list[bytes | None] = []
        while len(values) < number:
            assert time.monotonic() < end_s, values
            values += [received.record.value for received in reader.poll(200)]
    return values


def create(bootstrap: str) -> None:
    with AdminClient(bootstrap) as admin:
        admin.create_topics([NewTopic(name="kept")])


def test_reading_continues_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as host:
        at = host.bootstrap
        create(at)
        write(at, b"before")
        command = [sys.executable, "-m", "odradek", "consume", "--bootstrap-server", at, "--topic", "kept"]
        reader = subprocess.Popen(
            [*command, "--from-beginning", "--max-messages", "2"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert reader.stdout is not None
        assert reader.stdout.readline() == "before\n"
    assert reader.stderr is not None
    warning = reader.stderr.readline()

    with serving(data, "--set", f"listeners=PLAINTEXT://{at}"):
        write(at, b"after")
        out, err = reader.communicate(timeout=60)

    assert warning.startswith(f"WARN: {at}: ")
    assert warning.endswith(": trying again until a broker answers\n")
    assert (out, err) == ("after\n", "Processed a total of 2 messages\n")
    assert reader.returncode == 0


def test_writing_continues_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as host:
        at = host.bootstrap
        create(at)
        command = [sys.executable, "-m", "odradek", "produce", "--bootstrap-server", at, "--topic", "kept"]
        writer = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert writer.stdin is not None
        writer.stdin.write("before\n")
        await_records(at, 1)
    writer.stdin.write("during\n")
    assert writer.stderr is not None
    warning = writer.stderr.readline()

    with serving(data, "--set", f"listeners=PLAINTEXT://{at}"):
        out, err = writer.communicate("after\n", timeout=60)
        values = await_records(at, 3)

    assert warning.startswith(f"WARN: {at}: ")
    assert warning.endswith(": trying again for 30 s\n")
    assert (out, err, writer.returncode) == ("", "", 0)
    assert values == [b"before", b"during", b"after"]


def test_writing_ends_when_no_broker_answers_in_time(tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text("request.timeout.ms=5000\n")
    with serving(tmp_path / "data") as host:
        at = host.bootstrap
        create(at)
        command = [sys.executable, "-m", "odradek", "produce", "--bootstrap-server", at, "--topic", "kept"]
        writer = subprocess.Popen(
            [*command, "--command-config", str(config)],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        assert writer.stdin is not None
        writer.stdin.write("before\n")
        await_records(at, 1)

    _, err = writer.communicate("during\n", timeout=60)

    warning, error = err.splitlines()
    assert warning.endswith(": trying again for 5 s")
    assert error.startswith(f"Error while executing produce command : NETWORK_EXCEPTION: {at}: ")
    assert writer.returncode == 1
