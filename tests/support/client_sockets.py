"""Sockets that a client library leaves open when it cannot log in."""

from __future__ import annotations

import contextlib
import gc
import socket
import ssl
from collections.abc import Iterator


@contextlib.contextmanager
def closed_sockets() -> Iterator[None]:
    """Close, at the end, the sockets that clients of this process opened: kafka-python wakes itself
    with a pair of UNIX sockets, and does not close the socket of a failed TLS handshake.
    """
    before = client_sockets()
    try:
        yield
    finally:
        for each in client_sockets():
            if each not in before:
                each.close()


def client_sockets() -> list[socket.socket]:
    """The open sockets of this process that no host uses: a host has its TLS objects beside its sockets."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, socket.socket)
        and each.fileno() != -1
        and (each.family == socket.AF_UNIX or isinstance(each, ssl.SSLSocket))
    ]
