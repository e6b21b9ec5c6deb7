"""Plugins that a start asks for: installed ones by name, and others as they are.

A plugin that is not installed is a file, a module, a class, or an object with hooks. Its name is that of the
file or module without ``odradek_``, or of the class without ``Plugin``: ``TeamPlugin`` is ``team``.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from traceback import extract_tb
from types import ModuleType

import odradek
from odradek.bounds.small_file import read_small_file
from odradek.hosting.hook_check import WrongPlugin
from odradek.plugin import API_VERSION
from odradek.plugin.config import ConfigError
from odradek.plugin.places import place_of, place_of_definition
from odradek.plugin.plugin_stats import described

PYTHON = ".py"
MOST_BYTES = 1 << 24
ASKS_FOR = "ODRADEK_API_VERSION"
"""The attribute of a plugin that tells which version of `odradek.plugin` it needs."""
NAME = re.compile(r"[A-Za-z0-9_-]+")
NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
MARKED = "odradek_impl"
"""The attribute that ``hookimpl`` sets."""
HAVING = f"odradek {odradek.__version__} has version {API_VERSION} of the interface"


def by_name(plugins: Iterable[object]) -> dict[str, object]:
    """The plugins by name; the value of an installed one is None, that of a file its path.

    Args:
        plugins: Texts are names of installed plugins, or paths of files.

    Raises:
        ConfigError: It is no list, or two plugins have one name.
    """
    if isinstance(plugins, str | bytes) or not isinstance(plugins, Iterable):
        raise ConfigError("plugins", f"expected a list of plugins, found {plugins!r}; write [...] around it")
    found: dict[str, object] = {}
    for plugin in plugins:
        source = plugin
        if isinstance(plugin, str):
            source = Path(plugin) if is_file(plugin) else None
        name = str(plugin) if source is None else plugin_name(source)
        if name in found and found[name] != source:
            both = f"{shown(found[name])} and {shown(source)}"
            raise ConfigError(f"plugins.{name}", f"two plugins have this name: {both}; rename one of them")
        found[name] = source
    return found


def tables_of(plugins: object) -> dict[str, object]:
    """The tables of the plugins by name, of a mapping from plugins to tables."""
    if not isinstance(plugins, Mapping):
        return {}
    return {name: plugins[plugin] for plugin in plugins for name in by_name([plugin])}


def is_file(text: str) -> bool:
    """Whether a text is the path of a file, not the name of an installed plugin."""
    return text.endswith(PYTHON) or any(each in text for each in (os.sep, os.altsep) if each)


def plugin_name(plugin: object) -> str:
    """The name of a plugin: that of its table and of its metrics.

    Raises:
        ConfigError: The name of the file or module cannot be one.
    """
    if isinstance(plugin, Path):
        name = plugin.stem
    elif isinstance(plugin, ModuleType):
        name = plugin.__name__.rpartition(".")[2]
        if name == "__main__":
            name = Path(getattr(plugin, "__file__", None) or "main").stem
    else:
        kind = plugin if isinstance(plugin, type) else type(plugin)
        name = NEW_WORD.sub("-", kind.__name__.removesuffix("Plugin") or kind.__name__).lower()
    name = name.removeprefix("odradek_") or name
    if not NAME.fullmatch(name):
        expected = "the name of a plugin has letters, digits, _ and -"
        raise ConfigError(shown(plugin), f"{expected}, found {name!r}; rename it")
    return name


def shown(plugin: object) -> str:
    """A plugin, for a message."""
    if plugin is None:
        return "an installed plugin"
    return str(plugin) if isinstance(plugin, Path) else f"{plugin!r:.100}"


def loaded(name: str, plugin: object) -> object:
    """A plugin that is not installed; that of a file is the module.

    Raises:
        ConfigError: The file cannot be read or run.
    """
    return plugin_of_file(name, plugin) if isinstance(plugin, Path) else plugin


def plugin_of_file(name: str, path: Path) -> ModuleType:
    """Run a file, which may import what is next to it.

    Raises:
        ConfigError: It cannot be read, or fails.
    """
    if path.suffix != PYTHON:
        raise ConfigError(str(path), "expected the name of a plugin, or a Python file, which ends in .py")
    try:
        source = read_small_file(path, MOST_BYTES)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from error
    file = str(path.resolve())
    module = ModuleType(f"odradek_file_{name}")
    module.__file__ = file
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)
    sys.modules[module.__name__] = module  # dataclasses look up their module
    try:
        exec(compile(source, file, "exec"), module.__dict__)  # noqa: S102  the operator's own file
    except (Exception, SystemExit) as error:
        raise ConfigError(str(path), told(error, file)) from error
    return module


def told(error: BaseException, file: str) -> str:
    """The fault of a file: the line in it, and the error."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return f"line {error.lineno}: {error.msg}"
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == file]
    remedy = ""
    if isinstance(error, ImportError) and error.name == "odradek.plugin":
        remedy = f" ({HAVING})"
    elif isinstance(error, ModuleNotFoundError):
        remedy = f"; install what the plugin needs for {sys.executable}"
    return f"line {lines[-1] if lines else '?'} raised {described(error)}{remedy}"


def usable(plugin: object) -> object:
    """The object whose hooks are called: of a class, or a module with its hooks in one class, a new object.

    Raises:
        WrongPlugin: The class cannot be called without arguments, or it needs a newer host.
    """
    wanted = getattr(plugin, ASKS_FOR, API_VERSION)
    if isinstance(wanted, bool) or not isinstance(wanted, int) or wanted < 1:
        raise WrongPlugin(f"{ASKS_FOR} is {wanted!r}, expected a whole number from 1")
    if wanted > API_VERSION:
        raise WrongPlugin(f"needs version {wanted} of the interface, but {HAVING}: install a newer odradek")
    if isinstance(plugin, ModuleType) and not hooks_of(plugin):
        own = [each for each in vars(plugin).values() if isinstance(each, type)]
        classes = [each for each in own if each.__module__ == plugin.__name__ and hooks_of(each)]
        if len(classes) > 1:
            names = " and ".join(each.__name__ for each in classes)
            where = place_of_definition(hooks_of(classes[1])[0])
            raise WrongPlugin(f"the classes {names} have hooks{where}; keep them in one, or write functions")
        return usable(classes[0]) if classes else plugin
    if not isinstance(plugin, type):
        return plugin
    try:
        return plugin()
    except Exception as error:
        hint = "; let it need no arguments, or give an object of it" if isinstance(error, TypeError) else ""
        where = place_of(error) or place_of_definition(plugin)
        raise WrongPlugin(f"{plugin.__name__}() raised {described(error)}{where}{hint}") from error


def hooks_of(plugin: object) -> list[object]:
    """The functions of a plugin that are marked as hooks."""
    found = (getattr(plugin, name, None) for name in dir(plugin))
    return [each for each in found if hasattr(each, MARKED)]
