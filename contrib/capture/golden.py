"""Files of golden bytes: the requests and responses of one connection, in order.

``# text`` is a comment, ``> hex`` a request frame, ``< hex`` the response frame, both without their length.
If there is no response before the next comment, the broker closed the connection or did not answer; the
comment says which.
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
"""A change reaches the telemetry manager or the authorizer through the metadata log, after the response."""
CHANGES = (30, 31, 33, 44, 49)


def read_exactly(channel: socket.socket, count: int) -> bytes | None:
    """Read ``count`` bytes; None if the broker has closed the connection."""
    data = bytearray()
    while len(data) < count:
        piece = channel.recv(count - len(data))
        if not piece:
            return None
        data += piece
    return bytes(data)


def exchange(channel: socket.socket, frame: bytes) -> bytes | None:
    """Send a frame and return the response frame; None if the broker has closed the connection.

    Raises:
        TimeoutError: No response arrived in time.
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
        """Send one request and record it with its response.

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
        if request.api_key in CHANGES:
            time.sleep(APPLY_S)
        return response[4:]


Scenario = Callable[[Recorder], None]


@dataclass(slots=True)
class GoldenFolder:
    """The folder of the files, and the description of the broker in each of them."""

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
