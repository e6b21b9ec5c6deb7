"""The responses that are declared, as a table."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from odradek.wire import messages
from odradek.wire.api_names import NAMES, module_name

REQUEST, RESPONSE = "Request", "Response"


class DeclaredResponses(Mapping[int, type[Any]]):
    """The class of each response, by API key. It is imported when it is asked for."""

    def __init__(self) -> None:
        modules = {each.name for each in pkgutil.iter_modules(messages.__path__)}
        self.declared = frozenset(key for key in range(len(NAMES)) if module_name(key) in modules)

    def __getitem__(self, api_key: int) -> type[Any]:
        if api_key not in self.declared:
            raise KeyError(api_key)
        module = importlib.import_module(f"{messages.__name__}.{module_name(api_key)}")
        response: type[Any] = getattr(module, NAMES[api_key] + RESPONSE)
        return response

    def __iter__(self) -> Iterator[int]:
        return iter(self.declared)

    def __len__(self) -> int:
        return len(self.declared)


def response_of(request: type[Any]) -> type[Any]:
    """The class of the responses to a request; they are declared in one module."""
    name = request.__name__.removesuffix(REQUEST) + RESPONSE
    response: type[Any] = getattr(sys.modules[request.__module__], name)
    return response
