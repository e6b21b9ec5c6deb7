"""``odradek consume`` while the host restarts."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from odradek.client.admin import AdminClient
from odradek.client.producer import Producer
from odradek.client.resources import NewTopic
from odradek.wire.record import Record
from support.hosts import serving


def write(bootstrap: str, value: bytes) -> None:
    with AdminClient(bootstrap) as admin:
        Producer(admin).send({("kept", 0): [Record(None, value)]})


def test_reading_continues_after_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(data) as host:
        at = host.bootstrap
        with AdminClient(at) as admin:
            admin.create_topics([NewTopic(name="kept")])
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
