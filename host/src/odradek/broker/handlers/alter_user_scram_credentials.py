"""AlterUserScramCredentials v0 (KIP-554).

Behavior:
    * The client salts the password; what is kept of it is the stored key and the server key.
    * Each user by himself: a user of whom anything is refused keeps what he had.
    * Names must not be empty and iterations lie between 4096 and 16384 (UNACCEPTABLE_CREDENTIAL), the
      mechanism is known (UNSUPPORTED_SASL_MECHANISM), what is deleted exists (RESOURCE_NOT_FOUND).
    * One change per user and request, also for different mechanisms: else DUPLICATE_RESOURCE, as in Kafka.
    * Connections that a user has open stay open.
Differs from Kafka:
    * Names have at most 32767 characters and salts at most 1024 bytes (UNACCEPTABLE_CREDENTIAL): who logs in
      is sent the salt before it is known who it is.
    * At most 10000 changes in one request (POLICY_VIOLATION for all).
    * Everybody may change everybody's credentials: there are no ACLs.
"""

from __future__ import annotations

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def result(user: str, code: ErrorCode, message: str | None) -> AlterUserScramCredentialsResult:
    """What became of one user."""
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)


def refused(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """The same refusal for every user."""
    names = [change.name for change in request.deletions] + [change.name for change in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=[result(name, code, message) for name in dict.fromkeys(names)]
    )


@answers(AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, refusal=refused)
def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: RequestContext, broker: Broker
) -> AlterUserScramCredentialsResponse:
    outcomes = broker.credentials.alter(request.deletions, request.upsertions)
    return AlterUserScramCredentialsResponse(
        results=[
            result(user, ErrorCode.NONE, None) if error is None else result(user, error.code, error.message)
            for user, error in outcomes.items()
        ]
    )
