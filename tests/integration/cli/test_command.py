"""The command in its own process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.ci

HEAVY = ("google.protobuf", "grpc", "aiohttp", "opentelemetry", "rich", "sqlite3", "asyncio")


def test_help_imports_nothing_heavy() -> None:
    loaded = f"[name for name in {HEAVY} if name in sys.modules]"
    script = f"import sys; from odradek.cli.main import run; run(['--help']); print({loaded})"

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


def test_the_module_can_be_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "odradek", "nonsense"], capture_output=True, text=True, check=False
    )

    assert done.returncode == 2
    assert done.stderr.startswith("odradek: No such command")


def test_a_closed_pipe_gives_no_traceback() -> None:
    pipeline = f"{sys.executable} -m odradek --help | true; exit ${{PIPESTATUS[0]}}"

    done = subprocess.run(["bash", "-c", pipeline], capture_output=True, text=True, check=False)

    assert done.stderr == ""
    assert done.returncode in (0, 1)


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """A line of bash, where ``odradek`` is this program."""
    function = f'odradek() {{ "{sys.executable}" -m odradek "$@"; }}'
    return subprocess.run(["bash", "-c", f"{function}; {line}"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("command", ["--version", "plugins --json"])
def test_a_full_stdout_is_one_line_and_status_1(command: str, buffered: str) -> None:
    done = shell(f"export PYTHONUNBUFFERED={buffered}; odradek {command} > /dev/full")

    assert done.stderr == "odradek: cannot write to stdout: No space left on device\n"
    assert done.returncode == 1


@pytest.mark.parametrize("closed", [">&-", ">&- <&-"])
def test_a_closed_stdout_is_like_the_null_device(closed: str, tmp_path: Path) -> None:
    done = shell(f"odradek new-plugin census --directory {tmp_path / 'census'} {closed}")

    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "census" / "pyproject.toml").exists()


def test_an_error_beside_a_full_stdout_is_the_only_line() -> None:
    done = shell("odradek topics --list > /dev/full")

    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "--bootstrap-server" in done.stderr
