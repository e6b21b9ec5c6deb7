"""Errors that wait: they are stored, and raised or answered later."""

from __future__ import annotations

from typing import ClassVar, Self


class KeptError(Exception):
    """An error that may be stored."""

    is_answer: ClassVar[bool] = False
    """It tells a client what it asked for; it is no fault of the work that raised it."""

    def kept(self) -> Self:
        """The same error without the frames that it came through. Call it before an error is stored: the
        frames hold the request, and if one of them holds the error, only a full collection frees them.
        """
        self.__context__ = None
        return self.with_traceback(None)
