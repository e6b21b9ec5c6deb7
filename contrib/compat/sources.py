"""Suites of other projects, fetched from the registries of their languages into a folder."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import venv
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple


class Prepared(NamedTuple):
    """A suite that can be run."""

    place: Path
    """The folder in which it runs."""
    command: list[str]
    """Without the pattern of tests."""
    pattern: str
    """The option for a pattern."""


def writable(source: Path, folder: Path, replaced: Mapping[str, str]) -> Path:
    """Copy a source, which a registry's cache makes read-only, and replace texts in it."""
    copy = shutil.copytree(source, folder / "source")
    for path in [copy, *copy.rglob("*")]:
        path.chmod(path.stat().st_mode | 0o200)
        if replaced and path.suffix in (".go", ".py"):
            text = path.read_text(encoding="utf-8")
            for old, new in replaced.items():
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")
    return copy


def of_go(suite: Mapping[str, Any], folder: Path, replaced: Mapping[str, str]) -> Prepared:
    """A Go module."""
    command = ["go", "mod", "download", "-json", f"{suite['package']}@{suite['version']}"]
    (folder / "go.mod").write_text("module compat\n")
    found = json.loads(subprocess.run(command, cwd=folder, capture_output=True, check=True).stdout)
    options = [
        "-mod=mod",
        "-v",
        "-count=1",
        "-vet=off",
        "-timeout",
        f"{suite['seconds']}s",
        *suite["options"],
    ]
    source = writable(Path(found["Dir"]), folder, replaced)
    return Prepared(source, ["go", "test", *options, *suite["tests"]], "-run")


def of_python(suite: Mapping[str, Any], folder: Path, replaced: Mapping[str, str]) -> Prepared:
    """A distribution on PyPI: the tests of its source run with it in an environment of their own."""
    wanted = f"{suite['package']}=={suite['version']}"
    venv.create(folder / "environment", with_pip=True)
    python = str(folder / "environment/bin/python")
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", wanted, *suite["needs"]], check=True)
    source_only = ["--no-deps", "--no-binary", suite["package"], "-d", str(folder)]
    subprocess.run([*pip, "download", *source_only, wanted], check=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "archive", filter="data")
    (unpacked,) = (folder / "archive").iterdir()
    source = writable(unpacked, folder, replaced)
    for each in suite["hidden"]:
        shutil.rmtree(source / each)  # the installed package is tested
    for name, text in suite["files"].items():
        for old, new in replaced.items():
            text = text.replace(old, new)
        with (source / name).open("a", encoding="utf-8") as file:
            file.write(text)
    options = ["-rA", "--tb=short", "-p", "no:cacheprovider", "-W", "ignore", *suite["options"]]
    return Prepared(source, [python, "-m", "pytest", *options, *suite["tests"]], "-k")


FETCHERS: Final[Mapping[str, Callable[[Mapping[str, Any], Path, Mapping[str, str]], Prepared]]] = {
    "go": of_go,
    "python": of_python,
}
