"""The event loops that a host can run on."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from odradek.process.limits import new_loop

Result = TypeVar("Result")


def loops() -> list[Any]:
    """asyncio's own loop, and uvloop's if it is installed."""
    found: list[Any] = [pytest.param(asyncio.new_event_loop, id="asyncio")]
    if importlib.util.find_spec("uvloop") is not None:
        uvloop = importlib.import_module("uvloop")
        found.append(pytest.param(uvloop.new_event_loop, id="uvloop"))
    return found


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine on the loop that a program makes: listeners of plugins may have TLS there."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(work)
