"""The audit log: who was refused what, and who changed what.

Every denial and every administrative act is a line of the logger ``odradek.audit``. Refusals are limited by
principal, so that a client that is refused in a loop cannot fill the disk; their number is never lost.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from odradek.broker.results import Results, shortened
from odradek.clock import Clock, Timer
from odradek.plugin.authorizer import Action, Decision, ResourceType
from odradek.plugin.context import RequestContext
from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting
from odradek.wire.error_code import ErrorCode

log = logging.getLogger("odradek.audit")

INTERVAL_MS: Final = 60_000
MOST_PRINCIPALS: Final = 1_000
"""Principals whose refusals are counted at a time."""
AUTHORIZATION_FAILURES: Final = frozenset(
    code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")
)
RESOURCE_NAMES: Final = {
    ResourceType.TOPIC: "Topic",
    ResourceType.GROUP: "Group",
    ResourceType.CLUSTER: "Cluster",
    ResourceType.TRANSACTIONAL_ID: "TransactionalId",
    ResourceType.DELEGATION_TOKEN: "DelegationToken",
    ResourceType.USER: "User",
}
"""As Kafka's authorizer log has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Limits of the audit log."""

    # fmt: off
    refusals: int = setting(
        "audit.refusals.per.minute", Whole(INT, 1), 60,
        "Refused requests of one principal that are logged in a minute; the others are counted in a line at "
        "the end of the minute. What was changed is always logged.", unit="lines",
    )
    # fmt: on


@dataclass(slots=True)
class Window:
    """The refusals of one principal in a minute."""

    ends_ms: int
    written: int = 0
    unlogged: int = 0


@dataclass(slots=True)
class Act:
    """One administrative request and what came of it."""

    api: str
    on: Sequence[str]
    """The things to change, at most the first few of them."""
    count: int
    """Their number."""
    results: Results = field(default_factory=Results)

    @property
    def outcome(self) -> str:
        """``allowed`` if anything was changed, ``denied`` if the caller lacks the rights, else ``failed``."""
        codes = self.results.codes
        if not codes or codes[ErrorCode.NONE]:
            return "allowed"
        return "denied" if codes.keys() <= AUTHORIZATION_FAILURES else "failed"


class Audit:
    """Writes the audit log of one host.

    Args:
        clock: The time.
        timer: Ends the minutes.
        settings: The limits.
    """

    def __init__(self, clock: Clock, timer: Timer, settings: AuditSettings) -> None:
        self.clock = clock
        self.timer = timer
        self.most = settings.refusals
        self.windows: OrderedDict[str, Window] = OrderedDict()
        self.apis: Mapping[int, str] = {}
        """The names of the APIs, by key; set by the dispatcher."""
        self.denials = 0
        """Denied checks, logged or not."""

    def denied(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """An authorizer has denied a check that is to be logged."""
        self.denials += 1
        if self.may_write(context.connection.principal):
            log.info(
                "access denied",
                extra={
                    **caller(context),
                    "outcome": "denied",
                    "operation": action.operation.name,
                    "on": [f"{RESOURCE_NAMES.get(action.resource_type, 'Unknown')}:{shortened(action.name)}"],
                    "api": self.apis.get(context.api_key, context.api_key),
                    "why": decision.rule,
                },
            )

    def acted(self, context: RequestContext, act: Act) -> None:
        """An administrative request is finished. A denied one has been logged with its checks."""
        outcome = act.outcome
        if outcome == "denied" or (outcome == "failed" and not self.may_write(context.connection.principal)):
            return
        fields: dict[str, Any] = {**caller(context), "outcome": outcome, "api": act.api, "on": list(act.on)}
        if act.count > len(act.on):
            fields["of"] = act.count
        if act.results.problems:
            fields["results"] = {code.name: number for code, number in act.results.codes.items()}
            fields["why"] = act.results.problems
        log.info("administration", extra=fields)

    def may_write(self, principal: str) -> bool:
        """Whether another refusal of this principal may be logged now. If not, it is counted."""
        now_ms = self.clock.monotonic_ms()
        window = self.windows.get(principal)
        if window is None or now_ms >= window.ends_ms:
            self.end(principal)
            if len(self.windows) >= MOST_PRINCIPALS:
                self.end(next(iter(self.windows)))
            window = self.windows[principal] = Window(now_ms + INTERVAL_MS)
        if window.written < self.most:
            window.written += 1
            return True
        if window.unlogged == 0:
            self.timer.schedule(window.ends_ms, partial(self.end_of, principal, window))
        window.unlogged += 1
        return False

    def end_of(self, principal: str, window: Window) -> None:
        """The minute of a window is over."""
        if self.windows.get(principal) is window:
            self.end(principal)

    def end(self, principal: str) -> None:
        """Log the number of refusals of a principal that were not logged, if there are any."""
        window = self.windows.pop(principal, None)
        if window is not None and window.unlogged:
            log.info(
                "refusals that were not logged",
                extra={"principal": principal, "outcome": "refused", "count": window.unlogged},
            )


def caller(context: RequestContext) -> dict[str, object]:
    """The fields of a line about the client."""
    connection = context.connection
    return {
        "principal": connection.principal,
        "address": connection.client_address,
        "port": connection.client_port,
        "listener": connection.listener_name,
        "client_id": context.client_id,
        "connection": connection.connection_id,
    }
