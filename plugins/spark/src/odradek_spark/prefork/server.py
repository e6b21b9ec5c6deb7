"""Imports what Python workers need, then forks a worker for each client that asks.

Usage: ``python server.py LISTENER FOLDER``, with the number of a listening Unix socket. It ends with its
standard input, that is with the driver, and removes the folder; workers end when Spark closes theirs.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

MODULES: Final = (
    "pyspark.worker",
    "pyspark.sql.worker.lookup_data_sources",
    "pyspark.sql.worker.create_data_source",
    "pyspark.sql.worker.plan_data_source_read",
    "pyspark.sql.streaming.python_streaming_source_runner",
    "odradek_spark.source.data_source",
)
"""Imported before the first fork. A worker imports whatever else it needs."""
REQUEST_S: Final = 5.0
"""Seconds that a client has to send its request."""
MAX_REQUEST_BYTES: Final = 16 << 20
STREAMS: Final = 3
LENGTH_BYTES: Final = 4
MAX_STATUS: Final = 255


@dataclass(frozen=True, slots=True)
class Request:
    """The process that a client wants."""

    arguments: list[str]
    """Those after Python's ``-m``."""
    environment: dict[str, str]
    folder: str
    streams: list[int]
    """Its standard input, output and error."""

    @classmethod
    def read(cls, client: socket.socket) -> Request:
        """Read a request.

        Raises:
            OSError: The client does not send it in time.
            ValueError: It is malformed.
        """
        head, streams, _, _ = socket.recv_fds(client, LENGTH_BYTES, STREAMS)
        try:
            size = int.from_bytes(head, "big")
            if len(head) != LENGTH_BYTES or len(streams) != STREAMS or size > MAX_REQUEST_BYTES:
                raise ValueError("malformed request")
            with client.makefile("rb") as body:
                return cls(**json.loads(body.read(size)), streams=list(streams))
        except BaseException:
            for each in streams:
                os.close(each)
            raise


@dataclass(frozen=True, slots=True)
class Worker:
    """A running worker and the client that waits for it."""

    pid: int
    pidfd: int
    client: socket.socket


class Server:
    """Forks workers.

    Args:
        listener: The socket to which clients connect.
        path: ``sys.path`` of a Python without ``PYTHONPATH``.
    """

    def __init__(self, listener: socket.socket, path: Sequence[str]) -> None:
        self.listener, self.path = listener, path
        self.selector = selectors.DefaultSelector()
        self.selector.register(sys.stdin, selectors.EVENT_READ)
        self.selector.register(listener, selectors.EVENT_READ)

    def serve(self) -> None:
        """Fork until standard input ends."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is sys.stdin:
                    return
                if key.fileobj is self.listener:
                    self.accept()
                elif key.fileobj is not key.data.client:
                    self.reap(key.data)
                else:
                    self.end(key.data)

    def accept(self) -> None:
        """Fork a worker for a client; disconnect a client without a proper request."""
        client, _ = self.listener.accept()
        client.settimeout(REQUEST_S)
        try:
            wanted = Request.read(client)
            pid = os.fork()
            if not pid:
                self.become(wanted)
            for each in wanted.streams:
                os.close(each)
            worker = Worker(pid, os.pidfd_open(pid), client)
            client.send(b"+")
        except (OSError, TypeError, ValueError):
            client.close()
            return
        self.selector.register(worker.pidfd, selectors.EVENT_READ, worker)
        self.selector.register(client, selectors.EVENT_READ, worker)

    def end(self, worker: Worker) -> None:
        """End a worker, because Spark ended its client."""
        if worker.client.fileno() >= 0:  # it has not ended at the same moment
            self.selector.unregister(worker.client)
            signal.pidfd_send_signal(worker.pidfd, signal.SIGTERM)

    def reap(self, worker: Worker) -> None:
        """Tell the client that its worker has ended."""
        status = os.waitstatus_to_exitcode(os.waitpid(worker.pid, 0)[1])
        self.selector.unregister(worker.pidfd)
        os.close(worker.pidfd)
        with suppress(KeyError):
            self.selector.unregister(worker.client)
        with suppress(OSError):
            worker.client.send(bytes([status if 0 <= status <= MAX_STATUS else 1]))
        worker.client.close()

    def become(self, wanted: Request) -> NoReturn:
        """Turn this process into the worker, and run it to its end."""
        status = 1
        try:
            for number, each in enumerate(wanted.streams):
                os.dup2(each, number)
            os.closerange(STREAMS, max(wanted.streams) + 1)
            status = self.run(wanted)
        except BaseException:  # noqa: BLE001  as Python does at its end
            traceback.print_exc()
        finally:
            with suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(status)

    def run(self, wanted: Request) -> int:
        """Run a module as ``python -m`` does; return its exit status."""
        os.chdir(wanted.folder)
        os.environ.clear()
        os.environ.update(wanted.environment)
        given = wanted.environment.get("PYTHONPATH", "").split(os.pathsep)
        sys.path[:] = [wanted.folder, *filter(None, given), *self.path]
        sys.argv[:] = wanted.arguments
        with warnings.catch_warnings():
            # it is imported already, and runs a second time as the main module
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                runpy.run_module(wanted.arguments[0], run_name="__main__", alter_sys=True)
            except SystemExit as ended:
                return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        return 0


def main(number: int, folder: str) -> None:
    """Serve clients; end at once if this process cannot be forked safely."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    del sys.path[0]  # the folder of this program
    path = [each for each in sys.path if each not in given]
    for name in MODULES:
        with suppress(ImportError):  # a version of Spark without it
            importlib.import_module(name)
    if len(list(Path("/proc/self/task").iterdir())) == 1:
        gc.freeze()  # no collection writes to pages that the workers share
        Server(socket.socket(fileno=number), path).serve()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
