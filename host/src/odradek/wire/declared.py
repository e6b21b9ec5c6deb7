"""All messages that are declared, as a table."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from odradek.wire import messages

REQUEST, RESPONSE = "Request", "Response"


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
                yield DeclaredApi(api, request, response_of(request))


def response_of(request: type[Any]) -> type[Any]:
    """The class of the responses to a request; they are declared in one module."""
    name = request.__name__.removesuffix(REQUEST) + RESPONSE
    response: type[Any] = getattr(sys.modules[request.__module__], name)
    return response
