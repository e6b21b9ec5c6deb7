"""Common parts of the bench scripts: building the C programs, starting servers, counting their CPU time.

CPU time is the clock of a process: nanoseconds on a core, of all its threads, those that have ended too, and
of its children, including kernel time (mostly TCP over loopback).
"""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HERE = Path(__file__).parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "odradek-bench"
GCC_FLAGS = ("-O2", "-Wall", "-Wextra", "-D_GNU_SOURCE")
PATIENCE_S = 20.0
REACHED, MISSED, NOT_MEASURED = "reached", "MISSED", "not measured"


SKIPPED: list[str] = []
"""The rows and peers that were left out, with the reason."""


class UnavailableError(Exception):
    """A row needs something that is not on this machine; the message names it."""


def skip(what: str, reason: object) -> None:
    """Note and print that something is not measured, because the machine does not have what it needs."""
    SKIPPED.append(f"{what}: skipped, {reason}")
    print(SKIPPED[-1], file=sys.stderr)


def build(name: str) -> Path:
    """Compile ``native/<name>.c`` into the cache, unless this version of the source is already there.

    Raises:
        UnavailableError: There is no gcc.
    """
    source = HERE / "native" / f"{name}.c"
    digest = hashlib.sha256(source.read_bytes() + " ".join(GCC_FLAGS).encode()).hexdigest()[:16]
    program = CACHE / f"{name}-{digest}"
    if program.exists():
        return program
    gcc = shutil.which("gcc")
    if gcc is None:
        raise UnavailableError("no gcc to build the C reference and the load generator with")
    CACHE.mkdir(parents=True, exist_ok=True)
    partial = program.with_suffix(f".{os.getpid()}")
    subprocess.run([gcc, *GCC_FLAGS, "-o", partial, source], check=True)
    partial.replace(program)
    return program


@dataclass(slots=True)
class Server:
    """A server process that printed ``ready port=N`` and ends when its standard input closes."""

    process: subprocess.Popen[str]
    port: int
    last_words: str = ""
    """Its output between being ready and its end."""

    @property
    def pid(self) -> int:
        return self.process.pid


def started(
    stack: ExitStack, names: Iterable[str], command: Callable[[str], Sequence[str | Path]], core: int | None
) -> Iterator[tuple[str, Server]]:
    """Start the servers that this machine can run, and print which are missing."""
    for name in names:
        try:
            yield name, stack.enter_context(running(command(name), core=core))
        except UnavailableError as reason:
            skip(name, reason)


@contextmanager
def running(command: Sequence[str | Path], *, core: int | None = None) -> Iterator[Server]:
    """Start a server, pinned to ``core`` if one is given; close its standard input and wait at the end.

    Raises:
        UnavailableError: It ended before it was ready; standard error has its last output.
    """
    process = spawn(command, core)
    stdin, stdout = pipes(process)
    try:
        ready = stdout.readline()
        if "port=" not in ready:
            raise UnavailableError("it ended before it was ready")
        server = Server(process, int(ready.rpartition("port=")[2]))
        yield server
        stdin.close()
        server.last_words = stdout.read()
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()
        close(stdin, stdout)


def spawn(command: Sequence[str | Path], core: int | None) -> subprocess.Popen[str]:
    """Start a program with pipes to its standard streams, on one core if one is given."""

    def pin() -> None:
        if core is not None:
            os.sched_setaffinity(0, {core})

    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=pin)


def pipes(process: subprocess.Popen[str]) -> tuple[IO[str], IO[str]]:
    """Standard input and output of what `spawn` started."""
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def close(*streams: IO[str]) -> None:
    for stream in streams:
        try:
            stream.close()
        except BrokenPipeError:
            continue


def processes(pid: int) -> Iterator[int]:
    """A process and all its descendants."""
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            for child in children.read_text().split():
                yield from processes(int(child))


def tree_cpu_s(root: int) -> dict[str, float]:
    """CPU of a driver of Spark, of its JVM and of its Python workers, including ended children."""
    parents, used, names = {}, {}, {}
    for each in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # a process may end meanwhile
            fields = each.read_text().rpartition(")")[2].split()
            pid = int(each.parent.name)
            parents[pid], used[pid] = int(fields[1]), sum(map(int, fields[11:15]))
            names[pid] = (each.parent / "comm").read_text().strip()
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    parts = {"driver": 0.0, "JVM": 0.0, "Python": 0.0}
    for pid in family:
        part = "driver" if pid == root else "JVM" if names.get(pid) == "java" else "Python"
        parts[part] += used.get(pid, 0) / os.sysconf("SC_CLK_TCK")
    return parts


def cpu_ns(pid: int) -> int:
    """Nanoseconds on a core so far, of a process and of its live descendants.

    Threads that have ended count, too: without theirs, a window in which one ends would look too cheap.
    """
    return sum(time.clock_gettime_ns(cpu_clock(each)) for each in processes(pid))


def cpu_clock(pid: int) -> int:
    """The clock of a process's CPU time, as ``clock_getcpuclockid`` makes it on Linux."""
    return ~pid << 3 | 2


def verdict(figure: float, most: float, *, least: float = 0.0) -> str:
    """Whether a cost, or a ratio, is within its goal.

    One that is NaN, infinite, or not above 0, was not measured: it is a difference that is smaller than its
    noise, or a ratio to nothing.
    """
    if not 0 < figure < math.inf:
        return NOT_MEASURED
    return REACHED if least <= figure <= most else MISSED


def rss_bytes(pid: int) -> int:
    """The private memory of a process in RAM, which the machine would get back at its end."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line.startswith("Private_"))


def forget_peak(pid: int) -> None:
    """Let the peak of a process's memory begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_bytes(pid: int) -> int:
    """The most memory in RAM that a process has had since `forget_peak`."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def anonymous_bytes(pid: int) -> int:
    """The memory of a process in RAM that is no file, from a counter of the kernel.

    For a process that is measured meanwhile: `rss_bytes` has the kernel look at every page, which takes it
    five milliseconds for a gigabyte, and no other program gets that core before its end.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("RssAnon:"))


def touch_pages(size: int) -> None:
    """Write and delete a file of ``size`` bytes, so that the next writer gets pages that are already
    allocated.

    A virtual machine gets its memory at the first touch, and soon gives free memory back; that costs ten
    times as much as copying the bytes, and would be charged to the server that happens to write then.
    """
    piece = bytes(1 << 20)
    with tempfile.TemporaryFile() as file:
        for _ in range(size // len(piece) + 1):
            file.write(piece)


def cores() -> tuple[int | None, int | None]:
    """A core for the server and another one for the load; (None, None) if there is only one."""
    available = sorted(os.sched_getaffinity(0))
    return (available[0], available[1]) if len(available) > 1 else (None, None)


def head(bench: str) -> str:
    """The first line of a report: bench, date, and kind of machine."""
    facts = Path("/proc/cpuinfo").read_text().splitlines()
    names = [line.partition(":")[2].strip() for line in facts if line.startswith("model name")]
    load = " ".join(Path("/proc/loadavg").read_text().split()[:3])
    kind = f"{names[0] if names else 'unknown processor'}, {os.cpu_count()} cores"
    return f"{bench} bench, {time.strftime('%Y-%m-%d')}, {kind}, Python {sys.version.split()[0]}, load {load}"


def spread(values: Sequence[float], digits: int = 1) -> str:
    """Median and extremes."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"
