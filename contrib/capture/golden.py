"""Files of golden bytes: what was sent and what came back, in order, on one connection.

``# text`` is a comment, ``> hex`` a request frame, ``< hex`` the response frame, both without their length.
No response before the next comment means that the broker closed the connection or kept silent; the comment
says which.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from contrib.capture.kafka_requests import NAMES, Request

READ_TIMEOUT_S = 5
APPLY_S = 0.3
"""A change of configuration reaches the telemetry manager through the metadata log, after the response."""
CHANGES_CONFIG = (33, 44, 49)


def read_exactly(channel: socket.socket, count: int) -> bytes | None:
    """None when the other side has closed."""
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def exchange(channel: socket.socket, frame: bytes) -> bytes | None:
    """The response frame, or None when the other side has closed.

    Raises:
        TimeoutError: Nothing came.
    """
    channel.sendall(struct.pack(">i", len(frame)) + frame)
    try:
        length = read_exactly(channel, 4)
        return read_exactly(channel, struct.unpack(">i", length)[0]) if length else None
    except ConnectionResetError:
        return None


@dataclass(slots=True)
class Recorder:
    """One connection and the lines of one file."""

    channel: socket.socket
    lines: list[str]
    sent: int = 0

    def note(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def ask(self, label: str, request: Request) -> bytes:
        """Send one request and write both sides down.

        Returns:
            The response after its header, empty when the broker closed the connection or did not answer.
        """
        self.sent += 1
        frame = request.frame(correlation_id=self.sent)
        title = f"# {self.sent}: {NAMES[request.api_key]} v{request.version}: {label}"
        self.lines += ["", title, f"> {frame.hex()}"]
        try:
            response = exchange(self.channel, frame)
        except TimeoutError:
            self.note(f"the broker does not answer within {READ_TIMEOUT_S} s")
            return b""
        if response is None:
            self.note("the broker closes the connection")
            return b""
        self.lines.append(f"< {response.hex()}")
        if request.api_key in CHANGES_CONFIG:
            time.sleep(APPLY_S)
        return response[4:]


Scenario = Callable[[Recorder], None]


@dataclass(slots=True)
class GoldenFolder:
    """Where the files go and what every file says about the broker."""

    folder: Path
    port: int
    broker: str
    settings: str
    written: list[Path] = field(default_factory=list)

    def recorder(self, description: str) -> Recorder:
        channel = socket.create_connection(("127.0.0.1", self.port), timeout=READ_TIMEOUT_S)
        return Recorder(channel, [f"# {self.broker}", f"# {description}", f"# settings: {self.settings}"])

    def save(self, name: str, recorder: Recorder) -> None:
        recorder.channel.close()
        path = self.folder / f"{name}.hex"
        path.write_text("\n".join(recorder.lines) + "\n")
        self.written.append(path)
