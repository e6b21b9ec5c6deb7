"""Errors in received bytes. The server closes the channel they came from."""

from __future__ import annotations

from typing import Self


class KeptError(Exception):
    """An error that may be stored."""

    def kept(self) -> Self:
        """The same error without the frames that it came through. Call it before an error is stored: the
        frames hold the request, and if one of them holds the error, only a full collection frees them.
        """
        self.__context__ = None
        return self.with_traceback(None)


class WireError(KeptError):
    """The bytes do not follow the protocol, or exceed a bound."""


class Truncated(WireError):
    """The bytes end before the message does."""
