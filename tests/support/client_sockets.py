"""Sockets that a client library leaves open when it cannot log in."""

from __future__ import annotations

import contextlib
import gc
import socket
from collections.abc import Iterator


@contextlib.contextmanager
def closed_pairs() -> Iterator[None]:
    """Close, at the end, the socket pairs that were made meanwhile: kafka-python wakes itself with one."""
    before = pairs()
    try:
        yield
    finally:
        for each in pairs():
            if each not in before:
                each.close()


def pairs() -> list[socket.socket]:
    """The open UNIX sockets of this process."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, socket.socket) and each.fileno() != -1 and each.family == socket.AF_UNIX
    ]
