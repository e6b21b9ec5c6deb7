"""The file of a segment: opened when it is needed, flushed, renamed, and read at any position.

There is a bound on open descriptors: opening a file beyond it closes the least recently used one.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from weakref import WeakSet, WeakValueDictionary

from odradek.log.file_slice import FileSlice, HeldFile, Readable
from odradek.log.private_file import FILE_MODE
from odradek.log.storage_failures import StorageFailures
from odradek.waiting.steps import Steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode


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


class SegmentFile:
    """A file that `OpenFiles` may close while it is not used."""

    __slots__ = ("_closed", "_descriptor", "_files", "path", "size_bytes")

    def __init__(self, path: Path, files: OpenFiles) -> None:
        self.path = path
        self.size_bytes = 0
        """The end of the content. A failed write may have left more bytes in the file."""
        self._files = files
        self._descriptor = -1
        self._closed = False

    def _open(self, flags: int) -> int:
        if self._closed:
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR, f"{self.path.name} is closed")
        try:
            self._descriptor = os.open(self.path, flags | os.O_CLOEXEC, FILE_MODE)
        except OSError as error:
            raise self._failed("open", error) from error
        self._files.opened(self)
        return self._descriptor

    @property
    def descriptor(self) -> int:
        if self._descriptor < 0:
            return self._open(os.O_RDWR)
        self._files.used(self)
        return self._descriptor

    def _failed(self, action: str, error: OSError) -> ApiError:
        return self._files.failures.answer(action, self.path, error)

    def release(self) -> None:
        """Close the descriptor. It is opened again when it is needed."""
        if self._descriptor >= 0:
            with suppress(OSError):  # of a broken disk; the descriptor is closed all the same
                os.close(self._descriptor)
            self._descriptor = -1

    def close(self) -> None:
        """Close the file for good: another file may soon have its name. Clients that it is being sent to
        get the rest.
        """
        self.prepare_leaving()
        self._closed = True
        self._descriptor = self._files.closed(self, self._descriptor)
        self.release()

    def prepare_leaving(self) -> None:
        """Open the file if it is being sent, because its name is about to go."""
        if self._descriptor < 0 and not self._closed and self._files.is_held(self):
            with suppress(ApiError):  # the connections that it is being sent to are closed
                self._open(os.O_RDONLY)

    def flushing(self) -> Steps:
        """Flush the content to disk.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; a power failure may lose the content.
        """
        try:
            yield self.flusher()
        except OSError as error:
            raise self._files.failures.answer_to_flush(self.path, error) from error

    def flusher(self) -> Callable[[], None]:
        """The flush as a function for another thread, which must be called exactly once and raises `OSError`.

        It has its own descriptor, so the segment may be closed or deleted meanwhile.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: there is no descriptor left.
        """
        try:
            descriptor = os.dup(self.descriptor)
        except OSError as error:
            raise self._failed("flush", error) from error

        def fsync() -> None:
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

        return fsync

    def discard(self) -> None:
        """Close and delete the file, which was never part of a log."""
        self.close()
        try:
            self.path.unlink(missing_ok=True)
        except OSError as error:
            self._failed("delete", error)  # the next start deletes it

    def rename(self, path: Path) -> None:
        """Rename the file, without its indexes. An open descriptor stays valid.

        Raises:
            OSError: The file still has its old name.
        """
        os.rename(self.path, path)
        self.path = path

    def keep_age(self, original: SegmentFile) -> None:
        """Take the age of a file that this one replaces: retention uses it for records without timestamps.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        try:
            modified_ns = os.stat(original.path).st_mtime_ns
            os.utime(self.path, ns=(modified_ns, modified_ns))
        except OSError as error:
            raise self._failed("set the time of", error) from error

    def pread(self, length: int, position: int) -> bytes:
        try:
            return os.pread(self.descriptor, length, position)
        except OSError as error:
            raise self._failed("read", error) from error

    def slice(self, length: int, position: int) -> FileSlice:
        """The same as `pread`, to be read while it is sent."""
        return FileSlice(self._files.hold(self), position, length)

    def _write_rest(self, batch: bytes, written: int) -> None:
        # A full disk first causes a short write; the next write raises the error.
        rest = memoryview(batch)
        while written < len(batch):
            written += os.pwrite(self.descriptor, rest[written:], self.size_bytes + written)

    def _cut_quietly(self) -> None:
        try:
            os.truncate(self.path, self.size_bytes)
        except OSError:
            return  # the next append overwrites the partial batch, or recovery truncates it
