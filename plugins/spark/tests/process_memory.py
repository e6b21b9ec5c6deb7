"""Memory of processes and all their descendants, sampled through ``/proc``."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
PARENT, STARTED, PAGES = 1, 19, 21
"""Positions of these fields in ``/proc/<pid>/stat``, after the name."""
ROLES = (
    ("odradek.process.worker_process", "payload worker"),
    ("serve", "host"),
    ("java", "JVM"),
    ("odradek", "driver"),
    ("pyspark.worker", "Python worker"),
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A process at one moment."""

    pid: int
    parent: int
    started: int
    """In ticks since boot: distinguishes two processes with the same number."""
    rss_bytes: int


@dataclass(slots=True)
class ProcessMemory:
    """The memory of one process, from its first sample to its last."""

    pid: int
    role: str = ""
    at_s: list[float] = field(default_factory=list)
    rss_bytes: list[int] = field(default_factory=list)

    @property
    def life_s(self) -> float:
        """How long the process was watched."""
        return self.at_s[-1] - self.at_s[0]

    def sixth(self, number: int) -> float:
        """The median of one sixth of its life, in bytes; the first is 0."""
        first, step = self.at_s[0], self.life_s / 6
        begin_s, end_s = first + number * step, first + (number + 1) * step
        found = [
            size for at_s, size in zip(self.at_s, self.rss_bytes, strict=True) if begin_s <= at_s <= end_s
        ]
        return statistics.median(found or self.rss_bytes)

    @property
    def growth(self) -> float:
        """The last sixth divided by the second; the first is warm-up."""
        return self.sixth(5) / self.sixth(1)


class MemoryWatch:
    """Samples of process trees.

    Args:
        roots: The process ids at the top of the trees.
    """

    def __init__(self, roots: Sequence[int]) -> None:
        self.roots = tuple(roots)
        self.found: dict[tuple[int, int], ProcessMemory] = {}
        self.now: list[ProcessMemory] = []
        """The processes of the last sample."""

    def sample(self, at_s: float) -> None:
        """Sample all processes."""
        self.now = []
        for seen, role in trees(self.roots):
            memory = self.found.setdefault((seen.pid, seen.started), ProcessMemory(seen.pid))
            memory.role = role
            memory.at_s.append(at_s)
            memory.rss_bytes.append(seen.rss_bytes)
            self.now.append(memory)

    def totals(self) -> dict[str, int]:
        """Bytes by role, of the last sample."""
        return {
            role: sum(each.rss_bytes[-1] for each in self.now if each.role == role)
            for role in dict.fromkeys(each.role for each in self.now)
        }

    def long_lived(self, least_s: float) -> list[ProcessMemory]:
        """Processes that were watched for this long; others are short-lived by design."""
        return [each for each in self.found.values() if each.life_s >= least_s]


def trees(roots: Sequence[int]) -> Iterator[tuple[Seen, str]]:
    """Processes and all their descendants, with their roles; parents first."""
    seen = {each.pid: each for each in running()}
    wanted = [pid for pid in roots if pid in seen]
    for pid in wanted:  # grows during the walk
        wanted += [each.pid for each in seen.values() if each.parent == pid]
        command = arguments(pid)
        role = role_of(command)
        if role and "pyspark.daemon" in command and arguments(seen[pid].parent) != command:
            role += " daemon"
        if role:
            yield seen[pid], role


def running() -> Iterator[Seen]:
    """Every process of the machine."""
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parts = each.read_text().rpartition(")")[2].split()
            yield Seen(
                int(each.parent.name), int(parts[PARENT]), int(parts[STARTED]), int(parts[PAGES]) * PAGE_BYTES
            )


def arguments(pid: int) -> list[str]:
    """The command line; empty if the process is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().rstrip("\0").split("\0")
    return []


def role_of(command: list[str]) -> str:
    """The role of a process; empty if it is gone or about to exec another program."""
    names = {Path(part).name for part in command}
    for name, role in ROLES:
        if name in names:
            return role
    modules = [part for part in command if part.startswith("pyspark.")]
    return f"planner {modules[-1].rpartition('.')[2]}" if modules else ""
