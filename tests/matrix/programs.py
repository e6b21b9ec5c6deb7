"""Programs of clients: one process for each language, and one of its own for a client that is killed."""

from __future__ import annotations

import contextlib
import queue
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from support.child_process import same_imports

STOP_S: Final = 30.0


@dataclass
class Program:
    """A process of clients; see the line protocol in `matrix.members`."""

    command: Sequence[str]
    process: subprocess.Popen[str] = field(init=False)
    reader: threading.Thread = field(init=False)
    states: dict[str, queue.Queue[str]] = field(default_factory=dict)
    """What a client has become, in order."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            self.command,
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            env=same_imports(),
        )
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            name, _, state = line.rstrip().partition(" ")
            if name in self.states:
                self.states[name].put(state)

    def say(self, word: str, name: str, **settings: object) -> None:
        """Send a line; with ``start`` the client is known from then on."""
        if word == "start":
            self.states[name] = queue.Queue()
        parts = [word, name, *(f"{key.replace('__', '.')}={value}" for key, value in settings.items())]
        with self.lock:
            assert self.process.stdin is not None
            self.process.stdin.write(" ".join(parts) + "\n")

    def wait(self, name: str, timeout_s: float = STOP_S) -> str:
        """The next state of a client; ``late`` if there is none in time."""
        try:
            return self.states[name].get(timeout=timeout_s)
        except queue.Empty:
            return "late"

    def is_over(self, name: str) -> bool:
        """Whether a running client has told that it has ended."""
        states = self.states[name]
        return any(states.get().startswith(("failed", "closed")) for _ in range(states.qsize()))

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()
        self.leave_nothing()

    def stop(self) -> None:
        """Close all clients."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
            try:
                self.process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.leave_nothing()

    def leave_nothing(self) -> None:
        """Close the pipes of a process that has ended."""
        self.reader.join()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):  # what it was told last may not have reached it
                pipe.close()
