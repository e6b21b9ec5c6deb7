"""An HTTP server logs few lines about requests, however many bad ones come.

aiohttp logs each request that it cannot parse as an error with a traceback.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_exceptions import HTTPException

from odradek.bounds.sampled_log import SampledLog

log = logging.getLogger(__name__)

SHOWN_LENGTH: Final = 100
"""Of the problem of a request, in characters: the request's own bytes are a part of it."""


class RequestLog:
    """As a `logging.Logger`, in what an aiohttp server asks of one.

    Args:
        now_s: Monotonic time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.bad_requests, self.failures = SampledLog(log), SampledLog(log)

    def debug(self, message: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Log what is of interest to developers alone."""
        log.debug(message, *arguments, exc_info=exc_info)

    def exception(self, message: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Log a request that could not be answered: a bad one in one line, a bug with its traceback."""
        if isinstance(exc_info, ConnectionError):
            log.debug("a client has left before the end of its request")
            return
        now_ms = int(self.now_s() * 1000)
        if isinstance(exc_info, HttpProcessingError | HTTPException):
            problem = " ".join(str(exc_info).split())[:SHOWN_LENGTH]
            self.bad_requests.write(logging.INFO, now_ms, "a bad request was refused", problem=problem)
        else:
            self.failures.write(logging.ERROR, now_ms, message, *arguments, error=exc_info)
