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
from odradek.endpoints.bad_requests import BadRequests

log = logging.getLogger(__name__)

BAD_REQUESTS: Final = HttpProcessingError, HTTPException


class RequestLog:
    """As a `logging.Logger`, in what an aiohttp server asks of one.

    Args:
        now_s: Monotonic time.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.now_s = now_s
        self.bad_requests, self.failures = BadRequests(log), SampledLog(log)

    def debug(self, message: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Log what is of interest to developers alone. A first request that is no HTTP is not: a client has
        the wrong port or scheme.
        """
        if isinstance(exc_info, BAD_REQUESTS):
            self.exception(message, *arguments, exc_info=exc_info)
        else:
            log.debug(message, *arguments, exc_info=exc_info)

    def exception(self, message: str, *arguments: object, exc_info: BaseException | None = None) -> None:
        """Log a request that could not be answered: a bad one in one line, a bug with its traceback.

        Args:
            message: The text.
            arguments: The client's address, if it is known.
            exc_info: The reason.
        """
        if isinstance(exc_info, ConnectionError):
            log.debug("a client has left before the end of its request")
            return
        if isinstance(exc_info, BAD_REQUESTS):
            self.bad_requests.write(self.now_s(), arguments[0] if arguments else None, exc_info)
        else:
            now_ms = int(self.now_s() * 1000)
            self.failures.write(logging.ERROR, now_ms, message, *arguments, error=exc_info)
