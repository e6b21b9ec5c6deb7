"""Places in plugins, in words: file, line and function."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterable
from types import CodeType, FrameType
from typing import Any, Final

Frames = Iterable[tuple[FrameType, int]]
"""Frames with their lines, the outermost first."""
CALLERS: Final = (
    "odradek.hosting", "odradek.telemetry", "odradek.testing", "odradek.plugin.guard", "pluggy", "threading",
)  # fmt: skip
"""Packages that call plugins, and that no plugin calls."""
BETWEEN: Final = sys.stdlib_module_names | {"odradek", "uvloop"}
"""Packages between these and a plugin."""


def place_of(error: BaseException, called: bool = False) -> str:
    """The innermost line of the plugin that led to an error, in brackets; empty if there is none.

    An error in a library is told of the line that called it.

    Args:
        error: The error.
        called: Whether the plugin is called without a frame of the host, as its own tasks are.
    """
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" ({error.filename}:{error.lineno})"
    return innermost(traceback.walk_tb(error.__traceback__), called)


def innermost(frames: Frames, called: bool = False) -> str:
    """The innermost line of the package that the host has called, in brackets; empty if there is none."""
    found = innermost_frame(frames, called)
    return f" ({place(found[0].f_code, found[1])})" if found else ""


def innermost_frame(frames: Frames, called: bool = False) -> tuple[FrameType, int] | None:
    """The innermost frame of the package that the host has called, and its line."""
    package, found = "", None
    for frame, line in frames:
        module = str(frame.f_globals.get("__name__", ""))
        outermost = module.partition(".")[0]
        if module.startswith(CALLERS):
            called, package = True, ""  # a plugin may call the host, or wait in a library's frame
        elif called and not package and outermost not in BETWEEN:
            package = outermost
        if package and outermost == package:
            found = frame, line
    return found


def place(code: CodeType, line: int) -> str:
    """File and line, and the function unless it is the module itself."""
    where = f"{code.co_filename}:{line}"
    return where if code.co_name == "<module>" else f"{where} in {code.co_name}"


def place_of_definition(thing: Any) -> str:
    """The place of a definition, in brackets; empty if it is unknown."""
    thing = inspect.unwrap(thing)
    code = getattr(thing, "__code__", None)
    try:
        file, line = (
            (code.co_filename, code.co_firstlineno)
            if isinstance(code, CodeType)
            else (inspect.getsourcefile(thing), inspect.getsourcelines(thing)[1])
        )
    except (OSError, TypeError):
        return ""
    return f" ({file}:{line})"
