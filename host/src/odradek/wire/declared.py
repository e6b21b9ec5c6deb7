"""All messages that are declared, as a table."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any, NamedTuple

from odradek.wire import messages

REQUEST = "Request"


class DeclaredApi(NamedTuple):
    """One API."""

    name: str
    request: type[Any]
    response: type[Any]


def declared_apis() -> Iterator[DeclaredApi]:
    """Import the declarations of all APIs."""
    for module in pkgutil.iter_modules(messages.__path__):
        found = vars(importlib.import_module(f"{messages.__name__}.{module.name}"))
        for name, request in list(found.items()):
            if name.endswith(REQUEST) and hasattr(request, "API_KEY"):
                api = name.removesuffix(REQUEST)
                yield DeclaredApi(api, request, found[f"{api}Response"])
