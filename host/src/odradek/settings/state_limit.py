"""Bounds on the state that clients create and the host keeps.

Each room has the limits of its own state; `Broker.state_limits` lists them for the metrics and the start.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from odradek.bounds.sampled_log import SampledLog
from odradek.waiting.clock import Clock
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT16_MAX

log = logging.getLogger(__name__)

NAME_KEY = "name.max.length"


@dataclass(slots=True, eq=False)
class Refusals:
    """The number of refusals of one kind, with a sampled log."""

    clock: Clock | None = None
    """None if refusals are not logged."""
    number: int = 0
    sample: SampledLog = field(default_factory=lambda: SampledLog(log))

    def add(self, kind: str, setting: str, most: int) -> None:
        """Count a refusal, and log it if none was logged in the last minute."""
        self.number += 1
        if self.clock is not None:
            self.sample.write(
                logging.WARNING,
                self.clock.monotonic_ms(),
                "a request was refused because of a limit: raise the setting, or delete what is not needed",
                refused=self.number,
                kind=kind,
                setting=setting,
                most=most,
            )


@dataclass(slots=True, eq=False)
class NameLimit:
    """A bound on the length of each name that a client chooses and the host keeps."""

    most: int
    """In characters."""
    refusals: Refusals = field(default_factory=Refusals)

    def check(self, kind: str, name: str | None) -> None:
        """Check the length of a new name.

        Raises:
            ApiError: POLICY_VIOLATION, which clients do not retry.
        """
        if name is not None and len(name) > self.most:
            self.refuse(kind, len(name))

    def refuse(self, kind: str, length: int) -> None:
        """Count a name that is too long.

        Raises:
            ApiError: POLICY_VIOLATION.
        """
        self.refusals.add(kind, NAME_KEY, self.most)
        raise ApiError(
            ErrorCode.POLICY_VIOLATION, f"{NAME_KEY} allows {self.most} characters: the {kind} has {length}."
        )


ANY_NAME = NameLimit(INT16_MAX)
"""The bound of the protocol."""


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
    clock: Clock | None = None
    """None if refusals are not logged."""
    refusals: Refusals = field(init=False)
    """Of requests, or parts of requests."""
    reserved: int = 0
    """Accepted changes of a request that have not taken effect yet."""

    def __post_init__(self) -> None:
        self.refusals = Refusals(self.clock)

    def check(self, more: int = 1) -> None:
        """Check that ``more`` can be added.

        Raises:
            ApiError: POLICY_VIOLATION, which clients do not retry.
        """
        present = self.count() + self.reserved
        if more > 0 and present + more > self.most:
            self.refusals.add(self.kind, self.setting, self.most)
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
