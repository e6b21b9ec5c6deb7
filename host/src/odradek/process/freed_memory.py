"""Memory that clients and their requests took goes back to the system.

The allocator keeps what is freed, see `keep_buffers`: after some answers with the configurations of a
thousand topics, or after ten thousand connections with TLS, a process would go on holding 60 or 200 MB.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from odradek.waiting.clock import Clock, Timer

LOOK_MS: Final = 10_000
KEPT_BYTES: Final = 8 << 20
MUCH_BYTES: Final = 8 << 20
"""Less is not worth a pause of the loop."""
STATM: Final = Path("/proc/self/statm")
FIELDS: Final = (
    "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost",
)  # fmt: skip
"""Of ``struct mallinfo`` in glibc's malloc.h."""


class FreedMemory:
    """Gives memory back that nobody has used for some time.

    Clients that lost their connections come back within seconds and need the same memory again, as the next
    pushes do, so there has to be much at two looks. Giving back stops the loop for ten milliseconds for each
    100 MB.

    Args:
        spare: Memory that is not in use, and maybe other memory that does not shrink; in bytes.
        clock: The time.
        timer: Looks again and again.
        give_back: Gives back what is free, `give_back_freed`.
    """

    def __init__(
        self, spare: Callable[[], int], clock: Clock, timer: Timer, give_back: Callable[[], object]
    ) -> None:
        self.spare = spare
        self.clock = clock
        self.timer = timer
        self.give_back = give_back
        self.least = self.last = spare()
        """The spare memory after some was given back, or at a look since then; and at the last look."""
        self.plan()

    @classmethod
    def of_process(cls, clock: Clock, timer: Timer) -> FreedMemory | None:
        """That of this process; None if its allocator does not tell."""
        allocated = allocator()
        if allocated is None:
            return None
        return cls(lambda: resident_bytes() - allocated(), clock, timer, give_back_freed)

    def plan(self) -> None:
        self.timer.schedule(self.clock.monotonic_ms() + LOOK_MS, self.look)

    def look(self) -> None:
        """Give back if that is due."""
        now = self.spare()
        if min(now, self.last) - self.least >= MUCH_BYTES:
            self.give_back()
            self.least = now = self.spare()
        self.least, self.last = min(self.least, now), now
        self.plan()


def resident_bytes() -> int:
    """The memory of this process that is in the machine's memory."""
    import resource

    return int(STATM.read_text().split()[1]) * resource.getpagesize()


def allocator() -> Callable[[], int] | None:
    """Tells how many bytes glibc's allocator has given out; None for another allocator."""
    library = ctypes.CDLL(None) if sys.platform == "linux" and STATM.exists() else None
    for name, number in (("mallinfo2", ctypes.c_size_t), ("mallinfo", ctypes.c_uint)):
        function = getattr(library, name, None)
        if function is not None:
            fields = {"_fields_": [(each, number) for each in FIELDS]}
            function.restype = type("Mallinfo", (ctypes.Structure,), fields)
            return lambda: allocated_bytes(function)
    return None


def allocated_bytes(mallinfo: Callable[[], object]) -> int:
    found = mallinfo()
    return int(found.uordblks) + int(found.hblkhd)  # type: ignore[attr-defined]


def give_back_freed() -> None:
    """Give the system the freed memory that `keep_buffers` keeps, except for the next pushes' share.

    musl's allocator needs no such call, and has none.
    """
    if sys.platform == "linux":
        library = ctypes.CDLL(None)
        if hasattr(library, "malloc_trim"):
            library.malloc_trim(ctypes.c_size_t(KEPT_BYTES))
