"""The audit log: who was refused what, and who changed what.

Every denial, every refused login and every administrative act is a line of the logger ``odradek.audit``.
Refusals are limited by principal, and those of logins by address, so that a client that is refused in a loop
cannot fill the disk; their number is never lost.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.broker.refusal_lines import RefusalLines
from odradek.broker.results import Results, shortened
from odradek.findings.incidents import FAILED_LOGINS
from odradek.plugin.authorizer import Action, Decision
from odradek.plugin.context import RequestContext
from odradek.security.attempt_rate import network_of
from odradek.security.refused_login import RefusedLogin
from odradek.settings.kinds import INT, Whole
from odradek.settings.setting import setting
from odradek.telemetry.client_key import ClientKey
from odradek.telemetry.incidents import Incidents
from odradek.waiting.clock import Clock, Timer
from odradek.wire.api_names import api_name
from odradek.wire.error_code import ErrorCode

log = logging.getLogger("odradek.audit")

AUTHORIZATION_FAILURES: Final = frozenset(
    code for code in ErrorCode if code.name.endswith("_AUTHORIZATION_FAILED")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSettings:
    """Limits of the audit log."""

    # fmt: off
    refusals: int = setting(
        "audit.refusals.per.minute", Whole(INT, 1), 60,
        "Refusals of one principal, or logins of one address, that are logged in a minute; the others are "
        "counted. What was changed is always logged.",
        unit="lines",
    )
    # fmt: on


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
        self.requests = RefusalLines(log, "principal", settings.refusals, clock, timer)
        self.logins = RefusalLines(log, "address", settings.refusals, clock, timer)
        self.denials = 0
        """Denied checks, logged or not."""
        self.incidents: Incidents | None = None
        """Are told of refused logins, which the log may leave out."""

    def denied(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """An authorizer has denied a check that is to be logged."""
        self.denials += 1
        if self.requests.may_write(context.connection.principal):
            kind = action.resource_type.name.title().replace("_", "")  # as Kafka writes it
            log.info(
                "access denied",
                extra={
                    **caller(context),
                    "outcome": "denied",
                    "operation": action.operation.name,
                    "on": [f"{kind}:{shortened(action.name)}"],
                    "api": api_name(context.api_key),
                    "why": decision.rule,
                },
            )

    def login_refused(self, login: RefusedLogin) -> None:
        """A client could not prove who it is."""
        if self.incidents is not None:
            key = ClientKey(login.principal, login.client_id, login.address, *login.software)
            labels = {"mechanism": login.mechanism, "user": login.claimed or "", "address": login.address}
            self.incidents.add(key, FAILED_LOGINS, labels, connection_id=login.connection or "")
        if self.logins.may_write(network_of(login.address)):
            log.info(
                "login refused",
                extra={
                    "claimed": None if login.claimed is None else shortened(login.claimed),
                    "address": login.address,
                    "port": login.port,
                    "listener": login.listener,
                    "connection": login.connection,
                    "mechanism": login.mechanism,
                    "outcome": "denied",
                    "why": login.why,
                },
            )

    def acted(self, context: RequestContext, act: Act) -> None:
        """An administrative request is finished. A denied one has been logged with its checks."""
        outcome = act.outcome
        if outcome == "denied":
            return
        if outcome == "failed" and not self.requests.may_write(context.connection.principal):
            return
        fields: dict[str, Any] = {**caller(context), "outcome": outcome, "api": act.api, "on": list(act.on)}
        if act.count > len(act.on):
            fields["of"] = act.count
        if act.results.problems:
            fields["results"] = {code.name: number for code, number in act.results.codes.items()}
            fields["why"] = act.results.problems
        log.info("administration", extra=fields)


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
