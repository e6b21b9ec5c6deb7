"""The allocator of a process gives back what many connections have left."""

from __future__ import annotations

import subprocess
import sys

import pytest

GROWN_AND_FREED = """
import ctypes
from odradek.server.plugins.process import keep_buffers
from odradek.server.upkeep.freed_memory import give_back_freed

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

keep_buffers()
before = resident()
blocks = [bytes(20_000) for _ in range(10_000)]
kept = blocks[::100]
del blocks
held = resident()
give_back_freed()
print(held - before, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_freed_blocks_between_used_ones_go_back_to_the_system() -> None:
    done = subprocess.run(
        [sys.executable, "-c", GROWN_AND_FREED], check=True, stdout=subprocess.PIPE, text=True
    )
    held, left = map(int, done.stdout.split())

    assert held > 150_000_000
    assert left < held / 4
