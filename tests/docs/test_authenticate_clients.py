"""The commands of ``howto/authenticate-clients.md`` do what the page says."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from support.hosts import ServeProcess
from support.reference_page import blocks

PAGE = "howto/authenticate-clients.md"
PORT = "9094"


def text(language: str) -> str:
    """The only block in a language."""
    (found,) = [text for name, text in blocks(PAGE) if name == language]
    return found


def commands() -> list[list[str]]:
    """The command lines of each block."""
    return [found.splitlines() for name, found in blocks(PAGE) if name == "sh"]


def run(lines: Sequence[str], folder: Path, port: str) -> list[str]:
    """The output of the commands."""
    python = f'python() {{ {shlex.quote(sys.executable)} "$@"; }}'
    odradek = 'odradek() { python -m odradek "$@"; }'
    script = "\n".join(["set -e", python, odradek, *lines]).replace(PORT, port)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{script}: {done.stderr}"
    return done.stdout.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder in which the reader works."""
    (tmp_path / "admin.properties").write_text(text("properties"))
    (tmp_path / "odradek.toml").write_text(text("toml").replace(PORT, "0"))
    return tmp_path


def test_each_step_works_as_on_the_page(folder: Path) -> None:
    pytest.importorskip("confluent_kafka")
    first, (start,), then, last = commands()

    before = run(first, folder, PORT)
    data = f"data.dir={folder / 'odradek-data'}"
    assert start == "odradek serve --config odradek.toml"
    serve = ServeProcess("--config", str(folder / "odradek.toml"), "--set", data)
    try:
        port = serve.bootstrap.rpartition(":")[2]
        described = run(then, folder, port)
        program = text("python").replace(PORT, port)
        produced = subprocess.run([sys.executable, "-c", program], cwd=folder, timeout=60, check=False)
        after = run(last, folder, port)
    finally:
        status = serve.terminate()

    assert before[1:] == ["admin"]
    assert {path.stat().st_mode & 0o077 for path in folder.glob("*.password") if path.stem != "new"} == {0}
    assert [line.split() for line in described[2:6]] == [
        ["admin", "SCRAM-SHA-256", "4096"],
        ["admin", "SCRAM-SHA-512", "4096"],
        ["alice", "SCRAM-SHA-256", "4096"],
        ["alice", "SCRAM-SHA-512", "4096"],
    ]
    assert produced.returncode == 0
    assert after[-1] == "Deleted SCRAM-SHA-256, SCRAM-SHA-512 of user alice."
    assert status == 0
