"""``howto/install.md`` says how to install, no other page does, and its commands work."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

import odradek
from support.reader import INSTALL_PAGE, Reader, install_blocks
from support.reference_page import DOCS, ROOT, rows, sections

# `pip install odradek`, with extras and a version or without, unless from a folder
BY_NAME = re.compile(
    r"""pip3? install(?![^\n`]*--find-links)[^\n`]*[ '"`]"""
    r"""odradek(?:-(?:enrich|kafka|otlp|spark))?(?![\w./-])"""
)
CODE = ("host/src", "plugins", "examples", "contrib")


def places() -> list[Path]:
    """Files that tell a person how to install: pages, and code with its help and errors."""
    pages = [path for path in ROOT.rglob("*.md") if not path.relative_to(ROOT).parts[0].startswith(".")]
    code = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    return [path for path in [*pages, *code] if path not in (ROOT / "CHANGELOG.md", DOCS / INSTALL_PAGE)]


def test_only_the_page_about_installation_installs_by_name() -> None:
    found = {
        str(path.relative_to(ROOT)): match[0]
        for path in places()
        for match in BY_NAME.finditer(path.read_text(encoding="utf-8"))
    }

    assert found == {}


@pytest.mark.parametrize(
    ("line", "installs"),
    [
        ("pip install odradek", True),
        ('pip install -q "odradek[all]==0.1.0"', True),
        ("pip install odradek pytest", True),
        ("pip install odradek-otlp", True),
        ('pip install --find-links dist "odradek[all]"', False),
        ('pip install -e ".[all]"', False),
        ("pip install dist/odradek_census-0.1.0-py3-none-any.whl", False),
        ("pip install -e ./odradek-pad", False),
    ],
)
def test_what_counts_as_an_installation_by_name(line: str, installs: bool) -> None:
    assert bool(BY_NAME.search(line)) is installs


def test_the_page_lists_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hook = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]

    listed = rows(sections(INSTALL_PAGE)["Extras"])

    assert set(listed) == {"extra", "none", "all", *hook["siblings"], *hook["extras"]}


def test_the_classifiers_name_the_versions_with_which_all_tests_have_passed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    tested = rows(sections(INSTALL_PAGE)["Versions of Python"])

    passed = {
        ".".join(python.split(".")[:2]) for python, found in tested.items() if found[1].startswith("all pass")
    }
    prefix = "Programming Language :: Python :: 3."
    assert {
        "3." + each.removeprefix(prefix) for each in project["classifiers"] if each.startswith(prefix)
    } == passed


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.timeout(400)  # an installation alone may take 300 s
def test_a_checkout_can_be_installed_as_on_the_page(tmp_path: Path) -> None:
    checkout, _, _ = install_blocks()
    copy_of_the_tree(tmp_path / "odradek")
    reader = Reader(tmp_path)
    reader.run("cd odradek")

    shown = [reader.run(command).strip() for command in checkout]

    assert shown == ["", "", "", f"odradek {odradek.__version__}"]
    assert "otlp" in reader.run("odradek plugins")


@pytest.mark.nightly  # `.ci/run` tries the wheels at each change
@pytest.mark.timeout(400)
@pytest.mark.xdist_group("wheels")
def test_wheels_can_be_installed_as_on_the_page(installed_from_wheels: Reader) -> None:
    reader = installed_from_wheels
    home = Path(reader.environment["HOME"])
    test = "def test_app(odradek_host):\n    assert odradek_host.topics.names() == []\n"
    (home / "test_app.py").write_text(test, encoding="utf-8")

    tested = reader.run(f"pytest -q {home / 'test_app.py'}")
    installed = reader.run("pip list --format freeze").splitlines()
    page = Path(reader.run("odradek serve --help").strip().splitlines()[-1].strip())

    assert "1 passed" in tested
    assert len(installed) < 30
    assert page.is_relative_to(home)
    shipped = page.read_text(encoding="utf-8")
    assert shipped.startswith("# Configuration\n")
    assert "](../../../" not in shipped


def copy_of_the_tree(folder: Path) -> None:
    """Copy the files that git knows, as a clone has them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
