"""``reference/hooks.md`` has every hook and everything a plugin may import, with exact arguments."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import odradek.endpoints
import odradek.findings
import odradek.otlp
import odradek.plugin
import odradek.settings
import odradek.temporality
import odradek.topic
from odradek.plugin import hookspecs
from support.reference_page import ROOT, page, rows, sections
from test_examples import SAYS

SECTIONS = sections("reference/hooks.md")
HOOKS = [name for name in vars(hookspecs) if name.startswith("odradek_")]
INDEX = {name: row for name, row in rows(SECTIONS["The hooks"]).items() if name != "hook"}
ROOMS = (
    odradek.plugin,
    odradek.otlp,
    odradek.topic,
    odradek.findings,
    odradek.endpoints,
    odradek.temporality,
    odradek.settings,
)
FULL = (odradek.plugin, odradek.otlp, odradek.topic)
"""Each of their names has a section; those of the other rooms have a row of a table."""
OFFERED = [getattr(room, name) for room in FULL for name in room.__all__]
CLASSES = [offered for offered in OFFERED if inspect.isclass(offered)]
EXCEPTIONS = [kind for kind in CLASSES if issubclass(kind, Exception)]
RECORDS = [
    kind for kind in CLASSES if dataclasses.is_dataclass(kind) and kind is not odradek.plugin.PluginConfig
]
SPEAKING = [kind for kind in CLASSES if kind not in EXCEPTIONS and kind not in RECORDS]


def signature(function: Callable[..., Any], name: str) -> str:
    """``name(first, second=default)``, without ``self``."""
    parameters = [
        parameter for parameter in inspect.signature(function).parameters.values() if parameter.name != "self"
    ]
    shown = [
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in parameters
    ]
    return f"{name}({', '.join(shown)})"


def methods(kind: type) -> dict[str, Callable[..., Any]]:
    """The public methods that a class defines itself."""
    return {
        name: item
        for name, item in vars(kind).items()
        if inspect.isfunction(item) and not name.startswith("_")
    }


def test_there_are_hooks_and_protocols_to_compare() -> None:
    assert len(HOOKS) >= 3
    assert len(SPEAKING) >= 6


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_is_a_heading_with_its_exact_arguments(hook: str) -> None:
    assert signature(getattr(hookspecs, hook), hook) in SECTIONS


def test_the_index_has_every_hook() -> None:
    assert list(INDEX) == HOOKS


@pytest.mark.parametrize("hook", HOOKS)
def test_a_hook_has_an_example_that_implements_it_and_that_the_tests_run(hook: str) -> None:
    found = re.search(r"\(../../../examples/(\w+)\.py\)", INDEX[hook][-1])

    assert found is not None
    assert found[1] in SAYS
    source = (ROOT / "examples" / f"{found[1]}.py").read_text(encoding="utf-8")
    assert f"    @hookimpl\n    def {hook}(" in source


def test_everything_a_plugin_may_import_is_a_heading_or_a_row() -> None:
    described = SECTIONS.keys() | rows(page("reference/hooks.md")).keys()

    assert [name for room in ROOMS for name in room.__all__ if name not in described] == []
    assert [name for room in FULL for name in room.__all__ if name not in SECTIONS] == []


@pytest.mark.parametrize("kind", SPEAKING, ids=lambda kind: kind.__name__)
def test_a_class_has_each_of_its_methods_with_its_exact_arguments(kind: type) -> None:
    written = SECTIONS[kind.__name__]

    missing = [
        shown
        for name, method in methods(kind).items()
        if f"* `{(shown := signature(method, name))}`" not in written
    ]

    assert missing == []


@pytest.mark.parametrize("kind", EXCEPTIONS, ids=lambda kind: kind.__name__)
def test_an_exception_has_its_exact_arguments(kind: type[Exception]) -> None:
    assert f"`{signature(kind, kind.__name__)}`" in SECTIONS[kind.__name__]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_a_record_has_a_row_for_each_field(kind: Any) -> None:
    fields = [field.name for field in dataclasses.fields(kind)]

    written = [name for name in rows(SECTIONS[kind.__name__]) if name != "field"]

    assert written == fields
