"""Programs that are built with Go, outside the source tree, and kept for the next time."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

QUICK = ("-mod=mod", "-trimpath", "-gcflags=all=-N -l", "-ldflags=-s -w")
"""A thousand packages compile in half the time without optimization. They are for tests and trials."""
UNAVAILABLE = 3
BUILD_TIMEOUT_S = 900


class UnavailableError(Exception):
    """The program cannot be built here; the message says why."""


@dataclass(frozen=True, kw_only=True)
class GoProgram:
    """A program, and the files that decide what it is."""

    name: str
    sources: tuple[Path, ...]
    """The program is built again when one of them has changed."""
    build: Callable[[Path, Path], None]
    """Build in a folder; the second argument is the path of the program."""

    @property
    def cache_dir(self) -> Path:
        """The folder for build output: ``$ODRADEK_<NAME>_CACHE``, or one in the user's cache."""
        named = os.environ.get(f"ODRADEK_{self.name.upper()}_CACHE")
        return Path(named) if named else Path.home() / ".cache" / "odradek" / self.name

    @property
    def kept(self) -> Path:
        """The path of the program, which may not be built yet."""
        digest = hashlib.sha256(b"".join(source.read_bytes() for source in self.sources)).hexdigest()[:16]
        return self.cache_dir / digest / self.name

    def path(self) -> Path:
        """Return the path of the program, and build it if needed. Several processes may call this at once.

        Raises:
            UnavailableError: Go or the modules are not available.
        """
        program = self.kept
        folder = program.parent
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not program.exists():
                if shutil.which("go") is None:
                    raise UnavailableError("go is not installed")
                for source in self.sources:
                    shutil.copy(source, folder / source.name)
                partial = program.with_suffix(".partial")
                self.build(folder, partial)
                partial.replace(program)
        return program

    def main(self) -> int:
        """Print the path. If Go or the modules are not available, say why on stderr and return 3."""
        try:
            print(self.path())
        except UnavailableError as reason:
            print(reason, file=sys.stderr)
            return UNAVAILABLE
        return 0


def run(command: list[str], folder: Path, **environment: str) -> None:
    """Run a build step quietly.

    Raises:
        UnavailableError: The step failed or took too long.
    """
    try:
        done = subprocess.run(
            ["nice", *command],
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=BUILD_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{command[0]} did not end within {BUILD_TIMEOUT_S} s") from None
    if done.returncode:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise UnavailableError(f"{' '.join(command[:2])} failed: {said[-1] if said else done.returncode}")
