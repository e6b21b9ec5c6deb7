"""Half requests of strangers: what a host holds of them is bounded by its settings, not by the machine."""

from __future__ import annotations

import contextlib
import re
import selectors
import socket
import struct
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from support.hosts import serving

STRANGERS: Final = 16
REQUEST_BYTES: Final = 99 << 20
HALF: Final = bytes(REQUEST_BYTES // 2)
IDLE_S: Final = 1.0
"""A host that takes nothing for so long has had enough."""
SETTING_BYTES: Final = 256 << 20
EXTRA_BYTES: Final = 64 << 20
BEFORE_BYTES: Final = 120 << 20
"""More than a host without clients takes."""


def private_bytes(pid: int) -> int:
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Private_"))


@contextlib.contextmanager
def half_requests(address: tuple[str, int]) -> Iterator[int]:
    """Send as much as the host takes of large requests that stay incomplete; the number of bytes."""
    with contextlib.ExitStack() as opened, selectors.DefaultSelector() as selector:
        for _ in range(STRANGERS):
            stranger = opened.enter_context(socket.create_connection(address))
            stranger.sendall(struct.pack(">i", REQUEST_BYTES))
            stranger.setblocking(False)
            selector.register(stranger, selectors.EVENT_WRITE, memoryview(HALF))
        taken = 0
        while events := selector.select(IDLE_S):
            for key, _ in events:
                sent = key.fileobj.send(key.data[: 1 << 20])  # type: ignore[union-attr]
                taken += sent
                if sent == len(key.data):
                    selector.unregister(key.fileobj)
                else:
                    selector.modify(key.fileobj, selectors.EVENT_WRITE, key.data[sent:])
            if not selector.get_map():
                break
        yield taken


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.ci
def test_half_requests_take_no_more_memory_than_the_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        metrics = f"127.0.0.1:{free.getsockname()[1]}"
    with serving(tmp_path, "--set", f"metrics.listener=http://{metrics}") as serve:
        host, _, port = serve.bootstrap.partition(":")
        with half_requests((host, int(port))) as taken:
            private = private_bytes(serve.process.pid)
            page = urllib.request.urlopen(f"http://{metrics}/metrics").read().decode()

    queued = re.search(r'^odradek_queued_bytes\{[^}]*of="requests"[^}]*\} (\S+)$', page, re.MULTILINE)
    assert queued is not None
    assert SETTING_BYTES // 2 < float(queued[1]) <= SETTING_BYTES + EXTRA_BYTES
    assert private < BEFORE_BYTES + SETTING_BYTES + EXTRA_BYTES
    assert taken < STRANGERS * len(HALF)
