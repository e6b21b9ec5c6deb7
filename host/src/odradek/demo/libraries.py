"""The libraries that only the demo needs."""

from __future__ import annotations

import importlib
from typing import Any

import click


def library(module: str) -> Any:
    """Import a library of Kafka clients.

    Raises:
        click.UsageError: It is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.replace("_", "-")
        raise click.UsageError(f"the demo needs {name}: install the extra odradek[demo]") from None
