"""A worker: a process that does one piece of work after the other, as `PayloadWorkers` sends them.

The host starts it as ``python -m odradek.process.worker_process``. It imports little at first. It
imports what its work needs with the first one: still with the host's priority, or that would take seconds on
a busy machine, but it gives way to the host as it does during the work itself.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable
from functools import cache
from typing import BinaryIO

from odradek.process.giving_way import SharedCore, giving_way

LENGTH = struct.Struct(">I")
"""Precedes each pickle."""
NICENESS = 15
"""Lowers the priority of workers, so that the loop comes first on a machine with few cores. On one core with
a busy loop they get three percent of it, in small slices; see `giving_way`.
"""


@cache
def lower_priority() -> None:
    """Let the host come first from now on. Further calls do nothing."""
    if hasattr(os, "nice"):
        os.nice(NICENESS)


def outcome(message: bytes, loaded: Callable[[], None]) -> bytes:
    """Do a pickled work; return its pickled result or error. A work that cannot be loaded ends the worker."""
    work = pickle.loads(message)  # noqa: S301  the host wrote it
    loaded()
    try:
        answer = work()
    except Exception as error:  # noqa: BLE001  the host passes it on to the request, whatever it is
        answer = error
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def serve(requests: BinaryIO, answers: BinaryIO, loaded: Callable[[], None] = lambda: None) -> None:
    """Do works until the host closes the pipe.

    Args:
        requests: Pickled functions without arguments.
        answers: Takes their results or errors.
        loaded: Called whenever a work and what it needs are loaded.

    Raises:
        BrokenPipeError: The host was killed and does not read the answer.
    """
    core = SharedCore()
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        (size,) = LENGTH.unpack(head)
        if len(message := requests.read(size)) < size:
            return  # the host was killed while it wrote
        with giving_way(core):
            answer = outcome(message, loaded)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer, lower_priority)
    except BrokenPipeError:
        os._exit(0)  # without the flush at the end, which would fail with a message
    except KeyboardInterrupt:
        pass
