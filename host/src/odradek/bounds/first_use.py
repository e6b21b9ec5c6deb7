"""Names of a room that are loaded on first use, so that importing the room stays cheap."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

YOUNG_OBJECTS: Final = 50_000
"""Imports make objects that stay: to look for garbage among each 700 of them, as Python does, takes a tenth
of a start."""


@contextmanager
def few_collections() -> Iterator[None]:
    """Look for garbage rarely, while modules are imported into a program that is not ours."""
    young, *older = gc.get_threshold()
    if young:  # else this program collects nothing
        gc.set_threshold(max(young, YOUNG_OBJECTS), *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)


def on_first_use(room: str, **names: str) -> Callable[[str], Any]:
    """The ``__getattr__`` of a room.

    Args:
        room: Its ``__name__``.
        names: The names that each of its modules has, separated by spaces.
    """
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def loaded(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{room}.{modules[name]}"), name)

    return loaded
