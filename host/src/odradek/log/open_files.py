"""A bound on open descriptors: opening a file beyond it closes the least recently used one."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol
from weakref import WeakSet, WeakValueDictionary

from odradek.log.file_slice import HeldFile, Readable
from odradek.log.storage_failures import StorageFailures


class Releasable(Readable, Protocol):
    """The holder of a descriptor, which it can open again when it needs it."""

    def release(self) -> None:
        """Close the descriptor; must not raise."""


class OpenFiles:
    """The holders of descriptors in the order of their last use, shared by all logs."""

    __slots__ = ("_held", "_holders", "_kept", "_max_open", "failures")

    def __init__(self, max_open: int = 512, failures: StorageFailures | None = None) -> None:
        self._max_open = max_open
        self.failures = failures or StorageFailures()
        """Of all these files."""
        self._holders: OrderedDict[Releasable, None] = OrderedDict()
        self._held: WeakValueDictionary[Releasable, HeldFile] = WeakValueDictionary()
        """Files that are being sent."""
        self._kept: WeakSet[HeldFile] = WeakSet()
        """Those whose segments are closed: they stay open, up to the same bound."""

    def __len__(self) -> int:
        return len(self._holders)

    def opened(self, holder: Releasable) -> None:
        while len(self._holders) >= self._max_open:
            oldest, _ = self._holders.popitem(last=False)
            oldest.release()
        self._holders[holder] = None

    def used(self, holder: Releasable) -> None:
        self._holders.move_to_end(holder)

    def closed(self, holder: Releasable, descriptor: int) -> int:
        """The holder is closed for good. Returns the descriptor that remains to be closed, -1 for none."""
        self._holders.pop(holder, None)
        held = self._held.pop(holder, None)
        if held is None:
            return descriptor
        keep = len(self._kept) < self._max_open
        held.keep(descriptor if keep else -1)
        if not keep:
            return descriptor
        self._kept.add(held)
        return -1

    def hold(self, holder: Releasable) -> HeldFile:
        """The holder's file for slices of it, which share it."""
        held = self._held.get(holder)
        if held is None:
            held = self._held[holder] = HeldFile(holder)
        return held

    def is_held(self, holder: Releasable) -> bool:
        """Whether slices of the holder's file exist."""
        return holder in self._held
