"""Unit tests do not sleep, start threads or processes, or open connections.

They take their time from a mock clock. A test of real threads or sockets belongs in ``tests/integration``.
"""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
import time
from collections.abc import Callable
from typing import Any, Never

import pytest

REFUSED: tuple[tuple[object, str], ...] = (
    (time, "sleep"),
    (threading.Thread, "start"),
    (socket.socket, "bind"),
    (socket.socket, "connect"),
    (socket.socket, "connect_ex"),
    (subprocess.Popen, "__init__"),
)
next_turn = asyncio.sleep


def refuse(*arguments: object, **options: object) -> Never:
    """Fail the test with an exception that no ``except Exception`` catches."""
    pytest.fail(
        "a unit test may not sleep, start a thread or process, or connect: see tests/unit/conftest.py"
    )


async def next_turn_only(delay: float) -> None:
    """Let the loop take a turn, and refuse to wait longer."""
    if delay > 0:
        refuse()
    await next_turn(0)


def refused(real: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a call of the test, but not of a thread that an earlier test of this process has left."""

    def call(*arguments: object, **options: object) -> Any:
        if threading.current_thread() is threading.main_thread():
            refuse()
        return real(*arguments, **options)

    return call


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch) -> None:
    for owner, name in REFUSED:
        monkeypatch.setattr(owner, name, refused(getattr(owner, name)))
    monkeypatch.setattr(asyncio, "sleep", next_turn_only)
