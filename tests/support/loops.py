"""The event loops that a host can run on."""

from __future__ import annotations

import asyncio
import importlib.util
from typing import Any

import pytest


def loops() -> list[Any]:
    """asyncio's own loop, and uvloop's if it is installed."""
    found: list[Any] = [pytest.param(asyncio.new_event_loop, id="asyncio")]
    if importlib.util.find_spec("uvloop") is not None:
        uvloop = importlib.import_module("uvloop")
        found.append(pytest.param(uvloop.new_event_loop, id="uvloop"))
    return found
