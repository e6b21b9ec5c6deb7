"""Mistakes in the hooks of a plugin, found when it is loaded: each is told with its line, and what to do."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pluggy

from odradek.hosting.offers import HOOKS
from odradek.plugin.config import nearest
from odradek.plugin.places import place_of, place_of_definition
from odradek.plugin.plugin_stats import described

PREFIX = "odradek_"
DECLARED = "config"
"""The one argument of each hook."""


class WrongPlugin(Exception):
    """The plugin cannot be registered. The message says why, where, and what to do."""


def check_hooks(manager: pluggy.PluginManager, plugin: object) -> None:
    """Check the hooks of an imported plugin.

    Raises:
        WrongPlugin: The host could not call them.
    """
    if inspect.isroutine(plugin):
        where = place_of_definition(plugin)
        raise WrongPlugin(f"its entry point names the function {plugin.__name__}{where}; name its module")
    functions = dict(functions_of(plugin))
    marked = {name for name in functions if manager.parse_hookimpl_opts(plugin, name) is not None}
    for name, function in functions.items():
        if name in marked or name in HOOKS:
            check_hook(name, function, name in marked)
    if not marked:
        for name, function in functions.items():
            if name.startswith(PREFIX) and nearest(name, HOOKS):
                check_hook(name, function, False)
        file = getattr(plugin, "__file__", None)
        raise WrongPlugin(f"it implements no hook{f' ({file})' if file else ''}; {hint('')}")


def functions_of(plugin: object) -> Iterator[tuple[str, Any]]:
    """The functions or methods that may be hooks. The declarations of the host are none."""
    for name in dir(plugin):
        function = None if name.startswith("_") else getattr(plugin, name, None)
        if inspect.isroutine(function) and not hasattr(function, "odradek_spec"):
            yield name, function


def check_hook(name: str, function: Any, marked: bool) -> None:
    """Check one hook.

    Raises:
        WrongPlugin: The host could not call it.
    """
    where = place_of_definition(function)
    expected = f"expected def {name}({DECLARED})"
    if name not in HOOKS:
        raise WrongPlugin(f"there is no hook {name}{where}; {hint(name)}")
    if not marked:
        raise WrongPlugin(
            f"{name} is no hook without @hookimpl{where}; write it above the function, "
            "from odradek.plugin import hookimpl"
        )
    if inspect.iscoroutinefunction(function):
        raise WrongPlugin(f"{name} is an async function{where}, and the host does not await it; {expected}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise WrongPlugin(f"{name} is a generator{where}; return one object instead of yield")
    first = next(iter(inspect.signature(getattr(function, "__func__", function)).parameters), "")
    if inspect.ismethod(function) and first == DECLARED:
        raise WrongPlugin(f"{name} takes no self{where}; expected def {name}(self, {DECLARED})")
    taken = [each for each in inspect.signature(function).parameters if each != "self"]
    if not set(taken) <= {DECLARED}:
        raise WrongPlugin(f"{name} takes ({', '.join(taken)}){where}; {expected}")


def hint(name: str) -> str:
    """The hook that the author may have meant."""
    close = nearest(name, HOOKS)
    return f"did you mean {close}?" if close else f"known hooks: {', '.join(sorted(HOOKS))}"


def load_problem(error: BaseException, entry_point: EntryPoint) -> str:
    """Why a plugin cannot be loaded, where, and what to do."""
    if isinstance(error, WrongPlugin):
        return str(error)
    told, place = described(error), place_of(error)
    if place:
        missing = isinstance(error, ModuleNotFoundError)
        return told + place + (f"; install what the plugin needs for {sys.executable}" if missing else "")
    return f"{told}; its entry point is {entry_point.value}"
