"""Coroutines that never wait, run without an event loop."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest


def ran(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that never waits."""
    with pytest.raises(StopIteration):
        work.send(None)
