"""``odradek gateway``, with every byte for a client searched for an address of the cluster.

    python watched_gateway.py FILE SECRET PLAIN ARGUMENT...

At the end, FILE has a line with how often SECRET and PLAIN occurred in the bytes that clients were sent, and
the number of these bytes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from odradek.cli.main import main
from odradek.net.pairs.client_side import ClientSide


class Watch:
    """Counts two texts in what connections send, also where one is cut."""

    def __init__(self, secret: bytes, plain: bytes) -> None:
        self.wanted = (secret, plain)
        self.seen = [0, 0]
        self.sent_bytes = 0
        self.ends: dict[int, bytes] = {}
        """The last bytes of each connection."""

    def note(self, connection: int, data: bytes) -> None:
        self.sent_bytes += len(data)
        before = self.ends.get(connection, b"")
        for number, text in enumerate(self.wanted):
            self.seen[number] += (before[1 - len(text) :] + data).count(text)
        longest = max(map(len, self.wanted))
        self.ends[connection] = (before + data)[1 - longest :]

    def forget(self, connection: int) -> None:
        self.ends.pop(connection, None)


def watched(watch: Watch) -> None:
    """Let the connections to clients report what they send."""
    write, writelines, lost = ClientSide.write, ClientSide.writelines, ClientSide.connection_lost

    def watched_write(self: Any, data: bytes | memoryview) -> None:
        watch.note(id(self), bytes(data))
        write(self, data)

    def watched_writelines(self: Any, parts: list[bytes | memoryview]) -> None:
        watch.note(id(self), b"".join(parts))
        writelines(self, parts)

    def watched_lost(self: Any, exc: Exception | None) -> None:
        watch.forget(id(self))
        lost(self, exc)

    for name, instead in (
        ("write", watched_write), ("writelines", watched_writelines), ("connection_lost", watched_lost)
    ):  # fmt: skip
        setattr(ClientSide, name, instead)


if __name__ == "__main__":
    file, secret, plain, *arguments = sys.argv[1:]
    watch = Watch(secret.encode(), plain.encode())
    watched(watch)
    sys.argv = ["odradek", *arguments]
    try:
        main()
    finally:
        Path(file).write_text(f"{watch.seen[0]} {watch.seen[1]} {watch.sent_bytes}\n")
