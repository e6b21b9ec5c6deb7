"""Why a request or a login is refused."""

from __future__ import annotations

import math


class Refused(Exception):
    """A request is refused.

    Args:
        status: The HTTP status.
        reason: What is wrong, and what to do.
        headers: Headers of the answer.
        wanted: The page to go to after a login.
    """

    def __init__(
        self, status: int, reason: str, headers: dict[str, str] | None = None, wanted: str = "/"
    ) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers or {}
        self.wanted = wanted


class ProviderFailed(Exception):
    """An OpenID provider does not answer, or not as one."""


class LoginRefused(Exception):
    """An OpenID provider has let nobody in, or a user who may do nothing here.

    Args:
        reason: Why.
        name: The user, if that is known.
    """

    def __init__(self, reason: str, name: str = "") -> None:
        super().__init__(reason)
        self.name = name


def too_many(what: str, wait_s: float) -> Refused:
    """The refusal of something that comes too often."""
    seconds = max(1, math.ceil(wait_s - 1e-6))
    return Refused(429, f"too many {what}: wait {seconds} s", {"Retry-After": str(seconds)})
