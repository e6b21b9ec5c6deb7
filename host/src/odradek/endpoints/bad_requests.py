"""Requests that are no HTTP, or not for this port: few lines, however many come."""

from __future__ import annotations

import logging
from typing import Final

from odradek.bounds.sampled_log import SampledLog

BAD_REQUEST: Final = "a bad request was refused: check the client's port and scheme (http or https)"
SHOWN_LENGTH: Final = 100
"""Of the problem of a request, in characters: the request's own bytes are a part of it."""


class BadRequests:
    """The bad requests of one server."""

    def __init__(self, log: logging.Logger) -> None:
        self.lines = SampledLog(log)

    def write(self, now_s: float, address: object, problem: object) -> None:
        """Log a bad request, with the address of its client and the server's words for its fault.

        Args:
            now_s: Monotonic time.
            address: None if it is unknown.
            problem: May have line breaks.
        """
        shown = " ".join(str(problem).split())[:SHOWN_LENGTH]
        self.lines.write(logging.INFO, int(now_s * 1000), BAD_REQUEST, address=address, problem=shown)
