"""Plugins that are given as they are: their names, and one line about each mistake of their authors."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from odradek.hosting.active_plugin import PluginState, activate
from odradek.hosting.plugin_manager import load_plugins
from odradek.hosting.requested_plugins import by_name, plugin_name, tables_of
from odradek.plugin import API_VERSION, ConfigError, hookimpl

HOOK = """
from odradek.plugin import hookimpl

class Enricher:
    def labels(self, client_instance_id, context):
        return {}

@hookimpl
def odradek_enricher(config):
    return Enricher()
"""
IN_A_CLASS = """
from odradek.plugin import hookimpl

class PaintPlugin:
    @hookimpl
    def odradek_enricher(self, config):
        return self

    def labels(self, client_instance_id, context):
        return {}
"""


class TeamPlugin:
    @hookimpl
    def odradek_enricher(self, config: Any) -> TeamPlugin:
        return self

    def labels(self, client_instance_id: bytes, context: object) -> dict[str, str]:
        return {}


class Teams(TeamPlugin):
    def __init__(self, path: str) -> None:
        self.path = path


class Breaking(TeamPlugin):
    def __init__(self) -> None:
        raise LookupError("no file")


class Newer(TeamPlugin):
    ODRADEK_API_VERSION = API_VERSION + 1


class Odd(TeamPlugin):
    ODRADEK_API_VERSION = "new"


class Unmarked:
    def odradek_enricher(self, config: object) -> None: ...


class Misspelled:
    @hookimpl
    def odradek_enrich(self, config: object) -> None: ...


class WithoutSelf:
    @hookimpl
    def odradek_enricher(config): ...  # type: ignore[no-untyped-def]  # noqa: N805


class Asking:
    @hookimpl
    def odradek_enricher(self, table: object) -> None: ...


@pytest.fixture(autouse=True)
def _paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "paint.py"


def refused(*plugins: object) -> str:
    """The error of a start with these plugins, without the folder of the test."""
    with pytest.raises(ConfigError) as caught:
        load_plugins(by_name(plugins))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def active(*plugins: object) -> list[str]:
    """The names of the active plugins."""
    requested = by_name(plugins)
    found = activate(load_plugins(requested), {}, requested)
    return [each.name for each in found if each.name in requested and each.state is PluginState.ACTIVE]


@pytest.mark.parametrize(
    ("plugin", "name"),
    [
        (TeamPlugin, "team"),
        (TeamPlugin(), "team"),
        (type("TopicOwnersPlugin", (), {}), "topic-owners"),
        (type("Plugin", (), {}), "plugin"),
        (ModuleType("my_package.teams"), "teams"),
        (ModuleType("__main__"), "main"),
        (Path("some/where/top_teams-2.py"), "top_teams-2"),
        (Path("odradek_teams.py"), "teams"),
    ],
)
def test_a_plugin_has_the_name_of_its_class_module_or_file(plugin: object, name: str) -> None:
    assert plugin_name(plugin) == name


def test_texts_are_installed_plugins_or_files() -> None:
    found = by_name(["otlp", "./teams.py", "teams2.py", "stdout", "stdout"])

    assert found == {"otlp": None, "teams": Path("teams.py"), "teams2": Path("teams2.py"), "stdout": None}


def test_a_mapping_has_tables() -> None:
    given = {"otlp": {"a": 1}, TeamPlugin: {"b": 2}, "./teams.py": {"c": 3}}

    assert tables_of(given) == {"otlp": {"a": 1}, "team": {"b": 2}, "teams": {"c": 3}}
    assert tables_of([TeamPlugin]) == {}


@pytest.mark.parametrize("source", [HOOK, IN_A_CLASS])
def test_the_plugin_of_a_file_is_its_functions_or_its_class(file: Path, source: str) -> None:
    file.write_text(source)

    assert active(file) == ["paint"]


def test_a_file_imports_what_is_next_to_it(file: Path) -> None:
    (file.parent / "pigments_of_a_test.py").write_text("RED = 1")
    file.write_text(f"from pigments_of_a_test import RED\n{HOOK}")

    assert active(file) == ["paint"]


def test_a_file_is_read_again_by_each_start(file: Path) -> None:
    file.write_text(HOOK)
    active(file)
    file.write_text("raise SystemExit(3)")

    assert refused(file) == f"{file}: line 1 raised SystemExit: 3"


@pytest.mark.parametrize("plugin", [TeamPlugin, TeamPlugin(), Teams("x")])
def test_a_class_or_an_object_is_a_plugin(plugin: object) -> None:
    assert active(plugin) == [plugin_name(plugin)]


def test_a_module_is_a_plugin() -> None:
    module = ModuleType("painting")
    exec(HOOK, module.__dict__)

    assert active(module) == ["painting"]


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("", "no hook"),
        (HOOK.replace("@hookimpl\n", ""), "without @hookimpl"),
        (HOOK.replace("_enricher(", "_enrichers("), "did you mean odradek_enricher?"),
        ("def (:", "line 1: invalid syntax"),
        ("import nothing_of_this_name", "line 1 raised ModuleNotFoundError: No module named"),
        (f"{HOOK}\n1 / 0", "line 12 raised ZeroDivisionError: division by zero"),
        ("import json\njson.loads('{')", "line 2 raised JSONDecodeError"),
        ("from odradek.plugin import Soon", "has version 1 of the interface)"),
        (f"ODRADEK_API_VERSION = 9\n{HOOK}", "needs version 9 of the interface, but odradek 0.1.0"),
        ("\0", "null bytes"),
        (
            IN_A_CLASS + IN_A_CLASS.replace("Paint", "Other"),
            "the classes PaintPlugin and OtherPlugin have hooks ({file}:15); keep them in one, or write "
            "functions",
        ),
    ],
)
def test_a_file_that_is_no_plugin_is_told_in_a_line(file: Path, source: str, told: str) -> None:
    file.write_text(source)

    found = refused(file)

    assert found.startswith(f"{file}: ")
    assert told.format(file=file) in found


def test_a_path_that_is_no_file_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "folder.py"
    folder.mkdir()

    absent = tmp_path / "absent.py"

    assert refused(str(absent)) == f"{absent}: cannot be read: No such file or directory"
    assert refused(str(folder)) == f"{folder}: cannot be read: it is a folder, expected a file"
    assert refused(f"{tmp_path}/") == (
        f"{tmp_path}: expected the name of a plugin, or a Python file, which ends in .py"
    )


@pytest.mark.parametrize(
    ("plugins", "told"),
    [
        ([Teams], "plugins.teams: Teams() raised TypeError: Teams.__init__() missing 1"),
        ([Teams], f"'path' ({__file__}:"),
        ([Teams], "; let it need no arguments, or give an object of it"),
        ([Breaking], f"plugins.breaking: Breaking() raised LookupError: no file ({__file__}:"),
        ([WithoutSelf], "takes no self"),
        ([WithoutSelf], "; expected def odradek_enricher(self, config)"),
        ([Newer], "needs version 2 of the interface, but odradek 0.1.0"),
        ([Odd], "ODRADEK_API_VERSION is 'new', expected a whole number from 1"),
        ([Unmarked], "without @hookimpl"),
        ([Misspelled], "did you mean odradek_enricher?"),
        ([Asking], "table"),
        ([7], "plugins.int: "),
        ([TeamPlugin, TeamPlugin()], "plugins.team: two plugins have this name: <class "),
        (["a/team.py", TeamPlugin], "two plugins have this name: a/team.py and <class "),
        (["team", TeamPlugin], "two plugins have this name: an installed plugin and <class "),
        (["my plugin.py"], "my plugin.py: the name of a plugin has letters, digits, _ and -, found"),
        ("otlp", "plugins: expected a list of plugins, found 'otlp'; write [...] around it"),
        (TeamPlugin, "write [...] around it"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_in_a_line(plugins: Iterable[object], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_plugins(by_name(plugins))

    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_plugin_with_the_name_of_an_installed_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "stdout.py").write_text(HOOK)

    found = refused(tmp_path / "stdout.py")

    assert found.endswith(
        "stdout.py: odradek 0.1.0 is installed with the name stdout; rename this one, or uninstall that one"
    )


def test_a_missing_import_of_a_file_names_the_interpreter(file: Path) -> None:
    file.write_text("import no_such_module\n")

    told = f"; install what the plugin needs for {re.escape(sys.executable)}$"
    with pytest.raises(ConfigError, match=f"line 1 raised ModuleNotFoundError.*{told}"):
        active(file)


def test_a_plugin_that_is_given_but_offers_nothing_is_refused(file: Path) -> None:
    file.write_text(HOOK.replace("return Enricher()", "return None"))

    with pytest.raises(ConfigError, match=r"plugins\.paint: the plugin is asked for, but offers nothing"):
        active(file)
