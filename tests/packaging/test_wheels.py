"""No dependency needs a compiler: each has a wheel for every supported Python.

``wheels.toml`` has the versions that pip chose; ``python tests/packaging/test_wheels.py`` asks the index and
prints it again.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[2]
FACTS = Path(__file__).with_name("wheels.toml")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
WITHOUT_WHEEL = {"pyspark": "its source distribution has Python and jars only, so it needs no compiler"}


def requirements() -> Iterator[Requirement]:
    """The dependencies of the host, of its extras and of the plugins, without those of this repository."""
    host = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    texts = list(host["project"]["dependencies"])
    for extra in host["tool"]["hatch"]["metadata"]["hooks"]["custom"]["extras"].values():
        texts += extra
    for path in sorted(ROOT.glob("plugins/*/pyproject.toml")):
        texts += tomllib.loads(path.read_text(encoding="utf-8"))["project"]["dependencies"]
    for text in texts:
        found = Requirement(text)
        if not found.name.startswith("odradek") and found.name not in WITHOUT_WHEEL:
            yield found


def chosen(python: str) -> dict[str, str]:
    """The versions whose wheels pip would install for a version of Python.

    Raises:
        subprocess.CalledProcessError: A dependency has no wheel, or the index does not answer.
    """
    wanted = sorted({str(each) for each in requirements()})
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        options = (
            "--dry-run",
            "--no-deps",
            "--ignore-installed",
            "--only-binary=:all:",
            "--python-version",
            python,
        )
        where = ("--target", folder, "--report", str(report), "-q", "--retries", "0", "--timeout", "10")
        command = [sys.executable, "-m", "pip", "install", *options, *where, *wanted]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=150)
        installed = json.loads(report.read_text())["install"]
    return {canonicalize_name(each["metadata"]["name"]): each["metadata"]["version"] for each in installed}


@pytest.mark.parametrize("python", PYTHONS)
def test_each_dependency_has_a_wheel(python: str) -> None:
    facts = tomllib.loads(FACTS.read_text(encoding="utf-8"))[python]

    missing = [
        str(each)
        for each in requirements()
        if not each.specifier.contains(
            Version(facts.get(canonicalize_name(each.name), "0")), prereleases=True
        )
    ]

    assert missing == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(200)
def test_the_index_still_has_wheels_for_the_newest_python() -> None:
    try:
        found = chosen(PYTHONS[-1])
    except subprocess.TimeoutExpired as error:
        pytest.skip(f"the index does not answer in {error.timeout:g} s")
    except subprocess.CalledProcessError as error:
        if "No matching distribution" in error.stderr and "onnection" not in error.stderr:
            raise
        pytest.skip(f"the index does not answer: {error.stderr[-200:]}")

    assert {canonicalize_name(each.name) for each in requirements()} <= set(found)


if __name__ == "__main__":
    names = {canonicalize_name(each.name) for each in requirements()}
    for version in PYTHONS:
        print(f'["{version}"]')
        for name, number in sorted(chosen(version).items()):
            if name in names:
                print(f'{name} = "{number}"')
        print()
