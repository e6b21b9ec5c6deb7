#!/usr/bin/env python3
"""Print the path of an OpenTelemetry collector, built from the modules in ``builder.yaml``.

    python contrib/otelcol/collector.py     # <cache>/odradek/otelcol/<digest>/otelcol

Go fetches the modules through its proxy, which takes two minutes the first time. Build output goes to
``$ODRADEK_OTELCOL_CACHE`` (default ``~/.cache/odradek/otelcol``) and is rebuilt when ``builder.yaml`` has
changed. If Go or the modules are not available, the exit status is 3, with one line on stderr.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

MANIFEST = Path(__file__).resolve().parent / "builder.yaml"
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.155.0"
QUICK = ("-mod=mod", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w")
"""Without optimization a thousand packages compile in half the time; the program is for tests and trials."""
UNAVAILABLE = 3
BUILD_TIMEOUT_S = 900


class UnavailableError(Exception):
    """The collector cannot be built here; the message says why."""


def cache_dir() -> Path:
    """The folder for build output, outside the source tree."""
    named = os.environ.get("ODRADEK_OTELCOL_CACHE")
    return Path(named) if named else Path.home() / ".cache" / "odradek" / "otelcol"


def run(command: list[str], folder: Path) -> None:
    """Run a build step quietly.

    Raises:
        UnavailableError: The step failed or took too long.
    """
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} did not end within {BUILD_TIMEOUT_S} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise UnavailableError(f"{' '.join(command[:2])} failed: {said[-1] if said else done.returncode}")


def build(folder: Path, program: Path) -> None:
    """Generate the main package and compile it.

    The builder ends with ``go mod tidy``, which also fetches modules that only the tests of the modules need,
    and fails if the proxy does not have them. All files are written by then, so only the compiler decides
    whether the build fails.
    """
    shutil.copy(MANIFEST, folder / MANIFEST.name)
    try:
        run(["go", "run", BUILDER, "--config", MANIFEST.name, "--skip-compilation"], folder)
    except UnavailableError:
        if not (folder / "build" / "go.mod").exists():
            raise
    partial = program.with_suffix(".partial")
    run(["go", "build", *QUICK, "-o", str(partial), "."], folder / "build")
    partial.replace(program)


def collector() -> Path:
    """Return the path of the program, and build it if needed. Several processes may call this at once.

    Raises:
        UnavailableError: Go or the modules are not available.
    """
    folder = cache_dir() / hashlib.sha256(MANIFEST.read_bytes()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "otelcol"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            if shutil.which("go") is None:
                raise UnavailableError("go is not installed")
            build(folder, program)
    return program


def main() -> int:
    try:
        print(collector())
    except UnavailableError as reason:
        print(reason, file=sys.stderr)
        return UNAVAILABLE
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
