"""The load that other programs put on the machine while a bench runs."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.harness import processes

BUSY = (0, 1, 2, 5, 6, 7)
"""Fields of the first line of ``/proc/stat``: user, nice, system, irq, softirq, steal."""
OF_A_PROCESS = slice(11, 15)
"""Fields of ``/proc/<pid>/stat`` after the name: user and system time, and those of ended children."""
SHORTEST_S = 1.0


class Others:
    """Counts the CPU time of the machine that was not that of this process and its descendants.

    Work of the kernel that no process asked for counts as another program's, and so does what the machine's
    own host takes away from it.
    """

    def __init__(self) -> None:
        self.at_s = time.monotonic()
        self.busy_s = busy_s()
        self.last = 0.0

    def cores(self) -> float:
        """Cores that others kept busy since the last call, or as said last if that was a moment ago."""
        at_s = time.monotonic()
        if at_s - self.at_s >= SHORTEST_S:
            now_s = busy_s()
            self.last = max(0.0, (now_s - self.busy_s) / (at_s - self.at_s))
            self.at_s, self.busy_s = at_s, now_s
        return self.last


def busy_s() -> float:
    """Seconds of all cores so far, without those of this process and of its descendants."""
    machine = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    ticks = sum(int(machine[field]) for field in BUSY) - sum(map(ticks_of, processes(os.getpid())))
    return ticks / os.sysconf("SC_CLK_TCK")


def ticks_of(pid: int) -> int:
    """Of a process and of its children that have ended; 0 if it ends meanwhile."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(field) for field in fields[OF_A_PROCESS])
