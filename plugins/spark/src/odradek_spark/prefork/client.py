"""Stands in for Python where Spark starts a worker: has the server fork the worker, and waits for its end.

Usage: ``python -S -E client.py SOCKET ZIPS ARGUMENT...``, with arguments of Python. Without a server Python
runs them itself. ``ZIPS`` is the folder of PySpark's zip files, which Spark puts in front of ``PYTHONPATH``:
Python would compile the modules of a zip file in each process, so the installed package is used instead.

It is a program of its own, and imports only what a start of a few milliseconds allows.
"""

import json
import os
import socket
import sys

ANSWER_S = 60.0
"""Seconds that the server has to fork: it may still be importing."""


def main(path: str, zips: str, arguments: list[str]) -> None:
    """Run Python's arguments, and exit with their status."""
    found = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join(
        each for each in found if os.path.dirname(each) != zips or not each.endswith(".zip")
    )
    if arguments[:1] == ["-m"]:
        try:
            status = forked(path, arguments[1:])
        except OSError:
            status = None
        if status is not None:
            sys.exit(status)
    os.execv(sys.executable, [sys.executable, *arguments])


def forked(path: str, arguments: list[str]) -> "int | None":
    """Have the server fork a worker, and wait for it; None if there is no server."""
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(ANSWER_S)
        server.connect(path)
        wanted = {"arguments": arguments, "environment": dict(os.environ), "folder": os.getcwd()}
        body = json.dumps(wanted).encode()
        socket.send_fds(server, [len(body).to_bytes(4, "big")], [0, 1, 2])
        server.sendall(body)
        if server.recv(1) != b"+":
            return None
        server.settimeout(None)
        status = server.recv(1)
    return status[0] if status else 1


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
