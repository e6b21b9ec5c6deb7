"""The command in its own process."""

from __future__ import annotations

import subprocess
import sys

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
