"""Bounds on the state that clients create and the host keeps.

Each room has the limits of its own state; `Broker.state_limits` lists them for the metrics and the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class StateLimit:
    """A bound on one kind of state: `check` refuses a request that would exceed it.

    Nothing that exists is ever removed. If more is stored than a new bound allows, the host loads all of it
    and refuses growth only.
    """

    kind: str
    """The label of the metrics and the noun of the messages, in the plural."""
    setting: str
    """The key of the bound."""
    most: int
    count: Callable[[], int]
    """Returns how many exist now; called often, so it must not iterate over them."""
    reserved: int = 0
    """Accepted changes of a request that have not taken effect yet."""
    refused: int = 0
    """Requests, or parts of requests, that were refused."""

    def check(self, more: int = 1) -> None:
        """Check that ``more`` can be added.

        Raises:
            ApiError: POLICY_VIOLATION, which clients do not retry.
        """
        present = self.count() + self.reserved
        if more > 0 and present + more > self.most:
            self.refused += 1
            if str(self.refused).rstrip("0") == "1":  # the 1st, 10th, 100th ... time
                log.warning(
                    "requests were refused because a limit is reached: raise the setting, or delete what is "
                    "not needed",
                    extra={
                        "kind": self.kind,
                        "setting": self.setting,
                        "most": self.most,
                        "refused": self.refused,
                    },
                )
            allowed = f"{self.setting} allows {self.most} {self.kind}"
            raise ApiError(
                ErrorCode.POLICY_VIOLATION, f"{allowed}: the host has {present}, the request adds {more}."
            )

    def reserve(self, more: int = 1) -> None:
        """Check that ``more`` can be added, and count it until `reserved` is reset.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        self.check(more)
        self.reserved += max(more, 0)

    def warn_if_exceeded(self) -> None:
        """Log that more is stored than the bound allows."""
        present = self.count()
        if present > self.most:
            log.warning(
                "more is stored than a limit allows: all of it is loaded, and additions are refused",
                extra={
                    "kind": self.kind,
                    "stored": present,
                    "setting": self.setting,
                    "most": self.most,
                    "way_back": "raise the setting, or delete what is not needed",
                },
            )
