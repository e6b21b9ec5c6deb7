"""The guard of the unit tests refuses sleeps, threads, processes and connections."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import pytest


def sleep_on_a_loop() -> None:
    asyncio.run(asyncio.sleep(0.001))


def use_a_thread_of_the_loop() -> None:
    asyncio.run(asyncio.to_thread(int))


def connect() -> None:
    with socket.socket() as end:
        end.connect(("127.0.0.1", 9))


def listen() -> None:
    with socket.socket() as end:
        end.bind(("127.0.0.1", 0))


@pytest.mark.parametrize(
    "deed",
    [
        lambda: time.sleep(0),
        sleep_on_a_loop,
        lambda: threading.Thread().start(),
        use_a_thread_of_the_loop,
        connect,
        listen,
        lambda: subprocess.run(["true"], check=False),
    ],
)
def test_a_unit_test_waits_for_nothing_real(deed: Callable[[], object]) -> None:
    with pytest.raises(pytest.fail.Exception, match="a unit test may not"):
        deed()


def test_a_turn_of_the_loop_is_no_wait() -> None:
    asyncio.run(asyncio.sleep(0))
