"""A mail server and a webhook that take alarms, on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, TCPServer, ThreadingTCPServer
from typing import Any


@contextmanager
def running(server: TCPServer) -> Iterator[int]:
    """Serve in a thread, and yield the port."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield int(server.server_address[1])
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def mail_server() -> Iterator[tuple[int, list[str]]]:
    """The port of an SMTP server without TLS, and the mails that it got."""
    mails: list[str] = []

    class Handler(StreamRequestHandler):
        def say(self, line: str) -> None:
            self.wfile.write(f"{line}\r\n".encode())

        def handle(self) -> None:
            self.say("220 localhost")
            for line in self.rfile:
                word = line[:4].upper()
                if word == b"DATA":
                    self.say("354 go on")
                    mails.append(self.mail())
                self.say("221 bye" if word == b"QUIT" else "250 ok")
                if word == b"QUIT":
                    return

        def mail(self) -> str:
            lines = iter(self.rfile.readline, b".\r\n")
            return b"".join(lines).decode()

    with running(ThreadingTCPServer(("127.0.0.1", 0), Handler)) as port:
        yield port, mails


@contextmanager
def hook() -> Iterator[tuple[str, list[Any]]]:
    """The address of a webhook as Apprise writes it, and the bodies that it got."""
    bodies: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"json://127.0.0.1:{port}/alarms", bodies
