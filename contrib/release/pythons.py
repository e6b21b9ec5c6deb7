"""Runs the tests with each other Python that the distributions name, as far as this machine has them.

    python -m contrib.release.pythons [FILE ...]    # from the repository's root; without files, all tests

Each gets a new environment with the newest dependencies. The tests that need Spark, a JVM or a browser are
those of ``.ci/run``, with its Python.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from contrib.release.distributions import ROOT
from contrib.release.environments import Environment
from packaging.version import Version

CLASSIFIER = re.compile(r"Programming Language :: Python :: (\d+\.\d+)")
INSTALLED = Path.home() / ".pyenv/versions"
"""pyenv keeps Pythons there that are not on the path."""


def others() -> Iterator[tuple[str, str | None]]:
    """The other versions of Python that the distributions name, each with its program if there is one."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    own = ".".join(map(str, sys.version_info[:2]))
    for classifier in project["classifiers"]:
        named = CLASSIFIER.fullmatch(classifier)
        if named and named[1] != own:
            yield named[1], program(named[1])


def program(version: str) -> str | None:
    """The program of a version of Python that starts: the one on the path, or the newest of pyenv's."""
    # pyenv puts one on the path for versions that are not chosen, too, which does not start
    on_path = shutil.which(f"python{version}")
    installed = sorted(INSTALLED.glob(f"{version}.*"), key=lambda folder: Version(folder.name), reverse=True)
    found = [*([on_path] if on_path else []), *(str(folder / "bin/python") for folder in installed)]
    return next((python for python in found if version_of(python) == version), None)


def version_of(python: str) -> str | None:
    """The version that a program says to be; None if it does not start."""
    command = [python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def tested(python: str, files: list[str], folder: Path) -> bool:
    """Whether the tests pass with a Python; their output goes to this process's."""
    environment = Environment(folder, ROOT, python)
    environment.run("pip", "install", "-q", "-e", ".[all,dev]", cwd=ROOT)
    command = [str(environment.bin / "pytest"), "-q", *files]
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the tests with each other Python that is here.")
    parser.add_argument("files", nargs="*", metavar="FILE", help="tests; without any, what `pytest` runs")
    files: list[str] = parser.parse_args().files
    failed = []
    for version, python in others():
        print(f"Python {version}: {python or 'left out, it is not here'}", flush=True)
        if python is None:
            continue
        with tempfile.TemporaryDirectory(prefix="odradek-python-") as folder:
            if not tested(python, files, Path(folder) / "environment"):
                failed.append(version)
    if failed:
        sys.exit(f"tests fail with Python {', '.join(failed)}")


if __name__ == "__main__":
    main()
