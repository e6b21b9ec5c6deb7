"""A worker: a process that does one piece of work after the other, as `PayloadWorkers` sends them.

The host starts it as ``python -m odradek.server.plugins.worker_process``. It imports little at first, because
Python starts with the host's priority; what the work needs is imported with the first one, which gives way to
the host as the work itself does.
"""

from __future__ import annotations

import os
import pickle
import struct
import sys
from typing import BinaryIO

from odradek.server.plugins.giving_way import SharedCore, giving_way

LENGTH = struct.Struct(">I")
"""Precedes each pickle."""
NICENESS = 15
"""Lowers the priority of workers, so that the loop comes first on a machine with few cores. On one core with
a busy loop they get three percent of it, in small slices; see `giving_way`.
"""


def outcome(message: bytes) -> bytes:
    """Do a pickled work; return its pickled result or error."""
    try:
        answer = pickle.loads(message)()  # noqa: S301  the host wrote it
    except Exception as error:  # noqa: BLE001  the host answers for it
        answer = error
    return pickle.dumps(answer, pickle.HIGHEST_PROTOCOL)


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Do works until the host closes the pipe.

    Raises:
        BrokenPipeError: The host was killed and does not read the answer.
    """
    core = SharedCore()
    while len(head := requests.read(LENGTH.size)) == LENGTH.size:
        (size,) = LENGTH.unpack(head)
        if len(message := requests.read(size)) < size:
            return  # the host was killed while it wrote
        with giving_way(core):
            answer = outcome(message)
        answers.write(LENGTH.pack(len(answer)) + answer)
        answers.flush()


if __name__ == "__main__":
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except BrokenPipeError:
        os._exit(0)  # without the flush at the end, which would fail with a message
    except KeyboardInterrupt:
        pass
