"""A bound on open descriptors: opening a file beyond it closes the least recently used one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol


class Releasable(Protocol):
    """The holder of a descriptor, which it can open again when it needs it."""

    def release(self) -> None:
        """Close the descriptor; must not raise."""


class OpenFiles:
    """The holders of descriptors in the order of their last use, shared by all logs."""

    __slots__ = ("_holders", "_max_open")

    def __init__(self, max_open: int = 512) -> None:
        self._max_open = max_open
        self._holders: OrderedDict[Releasable, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Releasable) -> None:
        while len(self._holders) >= self._max_open:
            oldest, _ = self._holders.popitem(last=False)
            oldest.release()
        self._holders[holder] = None

    def used(self, holder: Releasable) -> None:
        self._holders.move_to_end(holder)

    def closed(self, holder: Releasable) -> None:
        self._holders.pop(holder, None)
