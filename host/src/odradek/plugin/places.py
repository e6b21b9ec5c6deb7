"""Where in a plugin something went wrong, in words: file, line and function."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

HOSTS = frozenset(("odradek", "pluggy", "importlib", "asyncio", "threading"))
"""Packages between the host and a plugin."""


def place_of(error: BaseException) -> str:
    """The innermost line of the plugin that led to an error, in brackets; empty if there is none.

    An error in a library is told of the line that called it.
    """
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f" ({error.filename}:{error.lineno})"
    found = list(plugin_frames(error.__traceback__))
    return f" ({place(found[-1][0].f_code, found[-1][1])})" if found else ""


def plugin_frames(frames: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    """The frames of a traceback that are in the package which the host called, with their lines."""
    called = None
    for frame, line in traceback.walk_tb(frames):
        package = package_of(frame)
        if called is None and package not in HOSTS:
            called = package
        if package == called:
            yield frame, line


def package_of(frame: FrameType) -> str:
    """The outermost package of the code that runs in a frame."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def place(code: CodeType, line: int) -> str:
    """File and line, and the function unless it is the module itself."""
    where = f"{code.co_filename}:{line}"
    return where if code.co_name == "<module>" else f"{where} in {code.co_name}"


def place_of_definition(thing: Any) -> str:
    """Where a function or class is defined, in brackets; empty if that is unknown."""
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
