"""Runs Java main classes in one JVM: the Python side of ``contrib/java``'s ``MainServer``."""

from __future__ import annotations

import socket
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import BinaryIO

LENGTH = struct.Struct(">i")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Exit status and output of a Java program."""

    status: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """Both streams: some tools report errors on the one, some on the other."""
        return self.out + self.err


@dataclass(frozen=True, slots=True)
class MainServer:
    """A running server. Runs take turns, also those of several threads."""

    port: int

    def run(self, main_class: str, *args: str, stdin: str, timeout_s: float) -> Finished:
        """Run a main class to its end.

        Raises:
            subprocess.TimeoutExpired: It was still running after ``timeout_s``. It keeps running.
        """
        texts = b"".join(packed(text) for text in args)
        request = packed(stdin) + packed(main_class) + LENGTH.pack(len(args)) + texts
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), timeout_s) as connection,
                connection.makefile("rb") as response,
            ):
                connection.sendall(request)
                (status,) = LENGTH.unpack(response.read(LENGTH.size))
                return Finished(status=status, out=unpacked(response), err=unpacked(response))
        except TimeoutError:
            raise subprocess.TimeoutExpired([main_class, *args], timeout_s) from None


def packed(text: str) -> bytes:
    data = text.encode()
    return LENGTH.pack(len(data)) + data


def unpacked(response: BinaryIO) -> str:
    (size,) = LENGTH.unpack(response.read(LENGTH.size))
    return response.read(size).decode()


@contextmanager
def main_server(command: list[str]) -> Iterator[MainServer]:
    """Start the server with ``command``; it ends with the context, and also if this process dies."""
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield MainServer(int(process.stdout.readline()))
