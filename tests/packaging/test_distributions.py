"""Packaging as pip sees it: one version everywhere, extras that are folders here and pins in a release, a
license.
"""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from packaging.requirements import Requirement

import odradek

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
NAMES = [folder.name for folder in PLUGINS]


def toml(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


HOST = toml(ROOT)
VERSION_FILE = ROOT / "host/src/odradek/__init__.py"
HOOK = HOST["tool"]["hatch"]["metadata"]["hooks"]["custom"]
APART, NEEDS = HOOK["apart"]["extras"], HOOK["needs"]


class MetadataHookInterface:
    """The part of hatchling's base class that the hook uses: the tests do not need hatchling."""

    def __init__(self, root: str, config: dict[str, Any]) -> None:
        self.root = root
        self.config = config


def optional_dependencies(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """The extras that ``host/hatch_build.py`` adds to the root's pyproject.toml."""
    interface = ModuleType("hatchling.metadata.plugin.interface")
    vars(interface)["MetadataHookInterface"] = MetadataHookInterface
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "host" / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    metadata: dict[str, Any] = {"name": HOST["project"]["name"], "version": odradek.__version__}
    module.SiblingExtras(str(ROOT), HOOK).update(metadata)
    extras: dict[str, list[str]] = metadata["optional-dependencies"]
    return extras


def versions_of(project: dict[str, Any]) -> list[str]:
    prefix = "Programming Language :: Python :: "
    return [name.removeprefix(prefix) for name in project["classifiers"] if name.startswith(prefix)]


def test_all_distributions_name_the_same_versions_of_python() -> None:
    found = {name: versions_of(toml(folder)["project"]) for name, folder in zip(NAMES, PLUGINS, strict=True)}
    lowest = HOST["project"]["requires-python"].removeprefix(">=")

    assert len(found) == 8
    assert set(map(tuple, found.values())) == {tuple(versions_of(HOST["project"]))}
    assert versions_of(HOST["project"])[:2] == ["3", lowest]


def test_the_relay_has_the_version_of_the_host() -> None:
    project = ET.parse(ROOT / "contrib/relay/pom.xml").getroot()

    assert project.findtext("{http://maven.apache.org/POM/4.0.0}version") == odradek.__version__


@pytest.mark.parametrize("folder", [ROOT, *PLUGINS], ids=["host", *NAMES])
def test_the_version_is_written_in_one_file_only(folder: Path) -> None:
    described = toml(folder)

    assert "version" not in described["project"]
    assert "version" in described["project"]["dynamic"]
    if folder.name != "speed":  # its setup.py reads the same file
        assert (folder / described["tool"]["hatch"]["version"]["path"]).resolve() == VERSION_FILE
    packages = folder.glob("src/*/__init__.py")
    assert not [path for path in packages if "__version__" in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("folder", PLUGINS, ids=NAMES)
def test_a_plugin_accepts_every_patch_release_of_its_host(folder: Path) -> None:
    major, minor, *_ = odradek.__version__.split(".")

    requirements = toml(folder)["project"]["dependencies"]

    assert f"odradek>={major}.{minor},<{major}.{int(minor) + 1}" in requirements


@pytest.mark.parametrize("folder", PLUGINS, ids=NAMES)
def test_a_plugin_is_named_after_its_folder(folder: Path) -> None:
    project = toml(folder)["project"]

    assert project["name"] == f"odradek-{folder.name}"
    libraries = {"speed", "tables"}
    hooks = {} if folder.name in libraries else {folder.name: f"odradek_{folder.name}"}
    assert project.get("entry-points", {}).get("odradek", {}) == hooks


def test_extras_are_the_folders_of_the_plugins() -> None:
    assert HOOK["siblings"] == {name: f"plugins/{name}" for name in NAMES}


def test_in_a_checkout_extras_install_the_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ODRADEK_RELEASE", raising=False)

    extras = optional_dependencies(monkeypatch)

    for folder in PLUGINS:
        needed = [folder, *(ROOT / "plugins" / each for each in NEEDS.get(folder.name, ()))]
        assert extras[folder.name] == [f"odradek-{each.name} @ {each.as_uri()}" for each in needed]
        assert (extras[folder.name][0] in extras["all"]) is (folder.name not in APART)
    for name, more in HOOK["more"].items():
        assert f"odradek-{name}[{more}] @ {(ROOT / 'plugins' / name).as_uri()}" in extras["all"]
        assert more in toml(ROOT / "plugins" / name)["project"]["optional-dependencies"]


def test_in_a_release_extras_are_pins_and_carry_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODRADEK_RELEASE", "1")

    extras = optional_dependencies(monkeypatch)

    pins = {
        name: [f"odradek-{each}=={odradek.__version__}" for each in (name, *NEEDS.get(name, ()))]
        for name in NAMES
    }
    assert {name: extras[name] for name in NAMES} == pins
    assert not [line for lines in extras.values() for line in lines if "file:" in line]


def test_the_extra_dev_leaves_the_plugins_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    extras = optional_dependencies(monkeypatch)

    # pip takes an editable folder and a direct reference to it for two distributions, which conflict
    assert not [line for line in extras["dev"] if line.startswith("odradek")]


def test_the_extra_test_is_what_an_application_needs_and_part_of_dev(monkeypatch: pytest.MonkeyPatch) -> None:
    extras = optional_dependencies(monkeypatch)

    assert [Requirement(line).name for line in extras["test"]] == ["pytest"]
    assert set(extras["test"]) < set(extras["dev"])


def test_tests_and_mypy_use_the_folders_not_the_installed_copies() -> None:
    sources = {"host/src"} | {f"plugins/{name}/src" for name in NAMES}

    assert sources <= set(HOST["tool"]["pytest"]["ini_options"]["pythonpath"])
    assert sources <= set(HOST["tool"]["mypy"]["mypy_path"])


def test_every_package_is_under_the_import_contracts() -> None:
    packages = {"odradek", "pyspark_odradek"} | {f"odradek_{name}" for name in NAMES if name != "speed"}

    assert set(HOST["tool"]["importlinter"]["root_packages"]) == packages


@pytest.mark.parametrize("package", ["host/src/odradek", *(f"plugins/{n}/src/odradek_{n}" for n in NAMES)])
def test_every_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").is_file()


@pytest.mark.parametrize("folder", [ROOT, *PLUGINS], ids=["host", *NAMES])
def test_every_distribution_carries_its_license(folder: Path) -> None:
    license_text = (ROOT / "LICENSE").read_text(encoding="utf-8")

    assert "Apache License" in license_text
    assert toml(folder)["project"]["license"] == "Apache-2.0"
    assert (folder / "LICENSE").read_text(encoding="utf-8") == license_text


def test_the_host_ships_its_license_and_its_changelog() -> None:
    include = HOST["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]

    assert HOST["project"]["license-files"] == ["LICENSE"]
    assert {"/LICENSE", "/CHANGELOG.md", "/README.md"} <= set(include)
