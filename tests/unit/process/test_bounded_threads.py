"""Connections with a thread each."""

from __future__ import annotations

import threading

import pytest

from odradek.process.bounded_threads import BoundedThreads

PEER = ("192.0.2.1", 5000)


def test_a_connection_that_gets_no_thread_gives_its_share_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    server = BoundedThreads()
    monkeypatch.setattr(threading.Thread, "start", refuse)

    assert server.verify_request(None, PEER)
    with pytest.raises(RuntimeError):
        server.process_request(None, PEER)

    assert server.shares.held == {}
