"""Clients that push as fast as they are answered, through failures of the host."""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from support.spooling import payload
from support.wire_client import WireClient

PUSHES_PER_CONNECTION = 50
"""Each push is from its own client instance, which the host forgets with the connection."""
AGAIN_S = 0.01
JOIN_S = 20


@dataclass(eq=False)
class Pushers:
    """Threads that push numbers, each once: whether an unanswered push was accepted is unknown."""

    bootstrap: str | None = None
    """The address of the host; None while it is down."""
    numbers: Iterator[int] = field(default_factory=itertools.count)
    accepted: set[str] = field(default_factory=set)
    refused: Counter[int] = field(default_factory=Counter)
    """By error code."""
    running: list[threading.Thread] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopping: threading.Event = field(default_factory=threading.Event)

    def names(self) -> set[str]:
        """The numbers accepted so far."""
        with self.lock:
            return set(self.accepted)

    def start(self, threads: int) -> None:
        self.running = [threading.Thread(target=self.live) for _ in range(threads)]
        for thread in self.running:
            thread.start()

    def stop(self) -> None:
        """Stop pushing; every push has been answered then."""
        self.stopping.set()
        for thread in self.running:
            thread.join(JOIN_S)

    def live(self) -> None:
        """Run one thread."""
        while not self.stopping.is_set():
            if self.bootstrap is None:
                time.sleep(AGAIN_S)
                continue
            try:
                self.push_to(self.bootstrap)
            except OSError:
                time.sleep(AGAIN_S)

    def push_to(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        with WireClient((host, int(port))) as client:
            client.introduce()
            for _ in range(PUSHES_PER_CONNECTION):
                if self.stopping.is_set():
                    return
                self.push(client)

    def push(self, client: WireClient) -> None:
        number = next(self.numbers)
        code = client.push(payload(number))
        with self.lock:
            if code:
                self.refused[code] += 1
            else:
                self.accepted.add(f"push.{number}")


@contextmanager
def pushing(threads: int) -> Iterator[Pushers]:
    """Pushers that are stopped at the end of the block."""
    pushers = Pushers()
    pushers.start(threads)
    try:
        yield pushers
    finally:
        pushers.stop()
