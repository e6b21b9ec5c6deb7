"""Writes ``tests/docs/public_names.txt``: the names of the host that stay as they are.

    python -m contrib.docs.public_names    # from the repository's root

The file has the names of the last release, then those that came (+) or went (-) since. A function has its
arguments, a class its fields, methods and members. A release moves the changes up: ``--release``.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import odradek
from odradek.hosting.offers import HOOKS
from odradek.plugin import API_VERSION

FILE = Path(__file__).parents[2] / "tests/docs/public_names.txt"
INTERFACE = "odradek.plugin"
ROOMS = (
    "odradek",
    INTERFACE,
    "odradek.otlp",
    "odradek.topic",
    "odradek.findings",
    "odradek.temporality",
    "odradek.endpoints",
    "odradek.settings",
    "odradek.testing",
    "odradek.testing.contracts",
    "odradek.testing.pushes",
)
SINCE = "# since then"
STARS: dict[object, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Written(NamedTuple):
    """The content of the file."""

    release: str
    """The version that had the names first."""
    api_version: int
    names: frozenset[str]
    """Those of the release."""
    changes: tuple[str, ...] = ()
    """``+ name`` or ``- name``, sorted by name."""

    @property
    def now(self) -> frozenset[str]:
        """The names with the changes."""
        came = {each[2:] for each in self.changes if each[0] == "+"}
        return (self.names | came) - {each[2:] for each in self.changes if each[0] == "-"}

    @property
    def text(self) -> str:
        head = f"# {self.release}, API_VERSION {self.api_version}"
        return "\n".join([head, *sorted(self.names), SINCE, *self.changes, ""])


def written() -> Written:
    """Read the file."""
    names, _, changes = FILE.read_text(encoding="utf-8").partition(SINCE)
    head, *rest = names.splitlines()
    release, _, api_version = head.removeprefix("# ").partition(", API_VERSION ")
    return Written(release, int(api_version), frozenset(rest), tuple(changes.split("\n")[1:-1]))


def changed(old: Written) -> Written:
    """The file with the names of the code."""
    new = frozenset(public())
    changes = [f"+ {name}" for name in new - old.names] + [f"- {name}" for name in old.names - new]
    return old._replace(changes=tuple(sorted(changes, key=lambda each: (each[2:], each))))


def public() -> Iterator[str]:
    """The names of the stable rooms, and the hooks."""
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            yield from of(f"{room}.{name}", getattr(module, name))
    yield from (f"hook {name}(config)" for name in HOOKS)


def of(path: str, value: Any) -> Iterator[str]:
    """A name, and what belongs to it."""
    if inspect.isclass(value):
        yield path
        yield from (f"{path}.{name}" for name in members(value))
    else:
        yield path + arguments(value) if inspect.isfunction(value) else path


def members(kind: type) -> set[str]:
    """The public members of a record, a protocol or an enumeration; those of other classes are documented."""
    fields = {field.name for field in dataclasses.fields(kind)} if dataclasses.is_dataclass(kind) else set()
    if issubclass(kind, Enum):
        return set(kind.__members__)
    if not fields and not getattr(kind, "_is_protocol", False):
        fields = set(getattr(kind, "_fields", ()))
        return fields
    methods = {
        name + arguments(value) if inspect.isfunction(value) else name
        for name, value in vars(kind).items()
        if not name.startswith("_") and name not in fields
    }
    hints = {name for name in vars(kind).get("__annotations__", {}) if not name.startswith("_")}
    return fields | methods | hints


def arguments(function: Any) -> str:
    """``(first, second=..., *, third)``, without ``self``."""
    shown = []
    parameters = [each for each in inspect.signature(function).parameters.values() if each.name != "self"]
    for index, each in enumerate(parameters):
        is_first_keyword = each.kind is each.KEYWORD_ONLY and all(
            before.kind is before.POSITIONAL_OR_KEYWORD for before in parameters[:index]
        )
        shown += ["*"] if is_first_keyword else []
        shown.append(STARS.get(each.kind, "") + each.name + ("" if each.default is each.empty else "=..."))
    return f"({', '.join(shown)})"


def main() -> None:
    if "--release" in sys.argv:
        new = Written(odradek.__version__, API_VERSION, frozenset(public()))
    else:
        new = changed(written())
    FILE.write_text(new.text, encoding="utf-8")


if __name__ == "__main__":
    main()
