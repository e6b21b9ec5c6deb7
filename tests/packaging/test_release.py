"""The checks of a release find what is wrong; `.ci/run` applies them to this tree."""

from __future__ import annotations

import os
import sys
import tarfile
from pathlib import Path

import pytest
from contrib.release import pythons
from contrib.release.__main__ import compare, pushed_nothing, uploaded
from contrib.release.bill_of_materials import completed
from contrib.release.distributions import pack_again, problems, problems_of, projects
from contrib.release.pythons import others, version_of
from contrib.release.tree import absolute

import odradek

METADATA = """\
Metadata-Version: 2.4
Name: odradek
Version: 9.1
Summary: x
Author: y
Classifier: Typing :: Typed
License-Expression: Apache-2.0
License-File: LICENSE
Requires-Python: >=3.11
Description-Content-Type: text/markdown
Requires-Dist: click
"""
FILES = ["odradek/py.typed", "odradek-9.1.dist-info/licenses/LICENSE"]


@pytest.mark.parametrize(
    ("metadata", "files", "problem"),
    [
        (
            METADATA + "Requires-Dist: odradek-otlp @ file:///any/otlp\n",
            FILES,
            "is a folder or an address",
        ),
        (METADATA.replace("License-File: LICENSE\n", ""), FILES, "no License-File in its metadata"),
        (METADATA.replace("Author: y\n", ""), FILES, "no Author in its metadata"),
        (METADATA.replace("Typing", "Topic"), FILES, "no classifier 'Typing :: Typed'"),
        (METADATA.replace("9.1", "9.0"), FILES, "version 9.0, expected 9.1"),
        (METADATA, FILES[1:], "no py.typed"),
        (METADATA, FILES[:1], "no LICENSE"),
    ],
)
def test_a_distribution_with_a_problem_is_reported(metadata: str, files: list[str], problem: str) -> None:
    (found,) = problems_of(metadata, files, "9.1")

    assert problem in found


def test_an_sdist_has_one_time_whenever_it_was_built(tmp_path: Path) -> None:
    source = tmp_path / "setup.py"
    source.write_text("x = 1\n")
    found = []
    for time_s in (1_000_000_000, 1_500_000_000):
        os.utime(source, (time_s, time_s))
        sdist = tmp_path / f"{time_s}.tar.gz"
        with tarfile.open(sdist, "w:gz") as archive:
            archive.add(source, "one/setup.py")
            archive.add(source, "one/another.py")
        pack_again(sdist, 1_700_000_000)
        with tarfile.open(sdist) as archive:
            member = archive.extractfile("one/setup.py")
            assert member is not None
            assert member.read() == b"x = 1\n"
        found.append(sdist.read_bytes())

    assert found[0] == found[1]


def test_a_page_for_an_index_has_absolute_links() -> None:
    page = "[a](../../host/docs/a.md#b) ![p](host/p.png) [x](https://x.org) [h](#here)"

    assert absolute(page, Path("plugins/otlp"), "https://x.org/o", "v1") == (
        "[a](https://x.org/o/blob/v1/host/docs/a.md#b) ![p](https://x.org/o/raw/v1/plugins/otlp/host/p.png) "
        "[x](https://x.org) [h](#here)"
    )


def test_two_builds_are_compared_by_their_bytes(tmp_path: Path) -> None:
    for name, text in (("first", "a"), ("second", "b")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same.whl").write_text("s")
        (tmp_path / name / "odradek.whl").write_text(text)

    with pytest.raises(ValueError, match=r"a second build differs in odradek\.whl"):
        compare(tmp_path / "first", tmp_path / "second")


def test_an_index_gets_the_host_last_and_no_wheel_of_this_linux_alone(tmp_path: Path) -> None:
    speed = ("odradek_speed-0.1.0-cp311-abi3-linux_x86_64.whl", "odradek_speed-0.1.0.tar.gz")
    for name in ("odradek-0.1.0-py3-none-any.whl", "odradek_otlp-0.1.0-py3-none-any.whl", *speed, "x.json"):
        (tmp_path / name).touch()

    assert [path.name for path in uploaded(tmp_path)] == [
        "odradek_otlp-0.1.0-py3-none-any.whl",
        "odradek_speed-0.1.0.tar.gz",
        "odradek-0.1.0-py3-none-any.whl",
    ]


@pytest.mark.parametrize(
    ("said", "nothing"),
    [
        ("after 5 s: 74 records produced, 0 data points pushed\nat the end: 70 data points pushed\n", False),
        ("after 5 s: 0 data points pushed\nat the end: 0 data points pushed\n", True),
        ("at the end: 10 data points pushed\n", False),
        ("the console is at http://127.0.0.1:1/\n", False),
    ],
)
def test_a_demo_is_judged_by_its_end(said: str, nothing: bool) -> None:
    assert pushed_nothing(said) is nothing


def test_a_good_distribution_has_no_problems() -> None:
    assert list(problems_of(METADATA, FILES, "9.1")) == []


def test_missing_and_old_distributions_are_reported(tmp_path: Path) -> None:
    (tmp_path / "odradek-0.0.1.tar.gz").touch()

    found = list(problems(tmp_path))

    assert "odradek-0.0.1.tar.gz is not of version" in found[-1]
    assert len(found) == 2 * len(projects()) + 1


def bill(version: str) -> dict[str, object]:
    """A bill as cyclonedx-bom writes it for an environment with the plugins in a version."""
    names = [f"odradek-{project.name}" for project in projects()[1:]]
    packages = [(name, version) for name in names] + [("pip", "26")]
    return {
        "metadata": {"component": {"name": "odradek"}},
        "components": [{"name": name, "version": v, "bom-ref": f"{name}=={v}"} for name, v in packages],
        "dependencies": [{"ref": f"{name}=={v}"} for name, v in packages],
    }


def test_the_bill_has_the_version_and_no_pip() -> None:
    found = completed(bill(odradek.__version__))

    assert found["metadata"]["component"] == {"name": "odradek", "version": odradek.__version__}
    assert "pip" not in {each["name"] for each in found["components"]}
    assert len(found["components"]) == len(found["dependencies"]) == len(projects()) - 1


def test_the_bill_of_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is not installed, but 0\.0\.1"):
        completed(bill("0.0.1"))


def test_the_other_pythons_are_those_of_the_classifiers() -> None:
    found = dict(others())

    own = ".".join(map(str, sys.version_info[:2]))
    assert set(found) == {"3.11", "3.12", "3.13", "3.14"} - {own}
    assert all(python is None or version_of(python) == version for version, python in found.items())


def test_a_python_that_does_not_start_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(path: str, script: str) -> str:
        program = tmp_path / path
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return str(program)

    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    monkeypatch.setattr(pythons, "INSTALLED", tmp_path / "versions")
    add("path/python3.99", "exit 127")
    add("versions/3.99.10/bin/python", "echo 3.98")
    works = add("versions/3.99.9/bin/python", "echo 3.99")
    add("versions/3.99.1/bin/python", "echo 3.99")

    assert pythons.program("3.99") == works
    assert pythons.program("3.100") is None
    assert version_of(str(tmp_path / "none")) is None
