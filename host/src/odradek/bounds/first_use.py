"""Names of a room that are loaded on first use, so that importing the room stays cheap."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


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
