"""Bare environments into which the built distributions are installed, and what is tried in them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

from packaging.requirements import Requirement

APART = ("spark", "tables")
"""Extras with hundreds of megabytes, which `all` does not have."""
NO_PLUGIN = (
    "all",
    "browser",
    "demo",
    "dev",
    "fast",
    "metrics-otlp",
    "oauth",
    "test",
    "tls",
    "tables",
    "speed",
)
"""Extras without a plugin of their own."""


class Environment:
    """A new virtual environment.

    Args:
        folder: Where it is made.
        wheels: The folder of the distributions.
        python: The program of its Python.
    """

    def __init__(self, folder: Path, wheels: Path, python: str = sys.executable) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.bin = folder / "bin"
        self.wheels = wheels

    def run(self, *command: str | Path, **options: object) -> str:
        """Run a program of the environment; return what it prints.

        Raises:
            RuntimeError: It failed; the message ends with its last lines.
        """
        program = str(self.bin / command[0])
        environ = {
            name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        done = subprocess.run(
            [program, *map(str, command[1:])],
            env=environ, capture_output=True, text=True, check=False, timeout=900, **options,  # type: ignore[call-overload]
        )  # fmt: skip
        if done.returncode:
            lines = (done.stdout + done.stderr).splitlines()[-20:]
            raise RuntimeError("\n".join([" ".join(map(str, command)), *lines]))
        return str(done.stdout)

    def install(self, *requirements: str) -> None:
        """Install with the newest dependencies."""
        self.run("pip", "install", "-q", "--find-links", self.wheels, *requirements)

    def install_lowest(self, *requirements: str) -> None:
        """Install with the lowest dependencies that the distributions allow."""
        self.run("pip", "install", "-q", "uv")
        lowest = ["--resolution", "lowest-direct", "--find-links", str(self.wheels)]
        bounds = sorted(set(direct(self.wheels)))
        self.run(
            "uv", "pip", "install", "-q", "--python", self.bin / "python", *lowest, *bounds, *requirements
        )

    def states(self) -> dict[str, str]:
        """The state of each plugin, by name."""
        rows = map(json.loads, self.run("odradek", "plugins", "--json").splitlines())
        return {row["name"]: row["state"] for row in rows}


def metadata(wheel: Path) -> tuple[list[str], list[str]]:
    """The extras and the requirements of a wheel."""
    with ZipFile(wheel) as opened:
        (name,) = [file for file in opened.namelist() if file.endswith(".dist-info/METADATA")]
        headers = Parser().parsestr(opened.read(name).decode())
    return headers.get_all("Provides-Extra", []), headers.get_all("Requires-Dist", [])


def extras(wheels: Path) -> list[str]:
    """The extras of the host that users ask for."""
    (host,) = wheels.glob("odradek-*.whl")
    return sorted(set(metadata(host)[0]) - {"dev", "browser"})


def direct(wheels: Path) -> Iterator[str]:
    """The requirements of the distributions that `all` installs, without those for each other."""
    for wheel in sorted(wheels.glob("*.whl")):
        if wheel.name.startswith(tuple(f"odradek_{name}-" for name in APART)):
            continue
        for each in map(Requirement, metadata(wheel)[1]):
            asked = [{"extra": extra} for extra in ("", "all", "metrics-otlp")]
            if not each.name.startswith("odradek") and wanted(each, asked):
                each.marker = None
                yield str(each)


def wanted(requirement: Requirement, environments: Sequence[dict[str, str]]) -> bool:
    """Whether a requirement holds for one of the extras."""
    return requirement.marker is None or any(map(requirement.marker.evaluate, environments))
