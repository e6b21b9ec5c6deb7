"""Starts the server of a driver, and has Spark start its workers through it."""

from __future__ import annotations

import atexit
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
VARIABLES: Final = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
SINGLE_THREAD: Final = {
    # a process with threads must not fork, and these libraries would start some when they are imported
    "OPENBLAS_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "_RJEM_MALLOC_CONF": "background_thread:false",
}
BACKLOG: Final = 64


@dataclass(frozen=True, slots=True)
class Prefork:
    """A server of forks."""

    process: subprocess.Popen[bytes]
    """It ends with its standard input."""
    folder: Path
    """Its socket and `python`; it removes the folder when it ends with the driver."""

    @property
    def python(self) -> str:
        """The program that stands in for Python."""
        return str(self.folder / "python")


@contextmanager
def forked_workers(master: str) -> Iterator[None]:
    """Have the session that starts inside ``with`` fork its Python workers, where that is possible.

    It is not if executors are processes of their own, or if ``PYSPARK_PYTHON`` names another Python than this
    one.
    """
    before = {name: os.environ.get(name) for name in VARIABLES}
    is_here = master.partition("[")[0] == "local" and before["PYSPARK_PYTHON"] == sys.executable
    server = shared() if is_here else None
    if server is None:
        yield
        return
    os.environ.update(dict.fromkeys(VARIABLES, server.python))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            if value is not None:
                os.environ[name] = value


@cache
def shared() -> Prefork | None:
    """The server of this process, for all of its sessions."""
    return started()


def started() -> Prefork | None:
    """Start a server; None where it cannot run.

    It imports while the JVM starts, and workers wait for it. If it ends, they start Python themselves.
    """
    spec = find_spec("pyspark")
    if sys.platform != "linux" or spec is None or spec.origin is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="odradek-spark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    zips = Path(spec.origin).parent / "python" / "lib"
    command = [sys.executable, "-S", "-E", str(HERE / "client.py"), str(folder / "socket"), str(zips)]
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
    script.chmod(0o700)
    if not os.access(script, os.X_OK):  # nothing can be run in this folder
        return None
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            listener.bind(str(folder / "socket"))
        except OSError:  # the path is too long for a socket
            return None
        listener.listen(BACKLOG)
        process = subprocess.Popen(
            [sys.executable, "-u", str(HERE / "server.py"), str(listener.fileno()), str(folder)],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            # Spark's own workers have this seed: they must agree about hashes
            env=os.environ | SINGLE_THREAD | {"PYTHONHASHSEED": os.environ.get("PYTHONHASHSEED", "0")},
            # as in the JVM: Ctrl-C stops the driver, which stops Spark
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
        )
    return Prefork(process, folder)
