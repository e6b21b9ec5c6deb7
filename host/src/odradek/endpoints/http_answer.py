"""The answer of an HTTP endpoint."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

MAX_HEADER_BYTES: Final = 65_536
"""Limit of one header of an answer, as in `http.client`. An answer with a longer one is none."""
WEB_PAGE: Final = "text/html"
"""The content type of portals and proxies that answer 200 in the place of an endpoint."""


class HttpAnswer(NamedTuple):
    """The response to a request."""

    status: int
    headers: Mapping[str, str]
    """Names in any case."""
    content_type: str
    body: bytes

    @property
    def text(self) -> str:
        """The body as text, which is for people."""
        return self.body.decode(errors="replace")

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_redirect(self) -> bool:
        return 300 <= self.status < 400

    @property
    def new_place(self) -> str:
        """The target of a redirect, for people."""
        return f"redirect to {self.headers.get('Location', 'nowhere')}"


def retry_after_s(value: str | None, now_s: float) -> float | None:
    """The wait in a Retry-After header, seconds or a date (RFC 9110, 10.2.3); None for anything else."""
    text = (value or "").strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        date = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max(0.0, date.timestamp() - now_s)
