"""AlterUserScramCredentials v0 (KIP-554).

Behavior:
    * The client salts the password; the host keeps only the stored key and the server key.
    * Each user is changed separately: a user with a refused change keeps all credentials as they were.
    * A name must not be empty and iterations must be between 4096 and 16384 (UNACCEPTABLE_CREDENTIAL); the
      mechanism must be known (UNSUPPORTED_SASL_MECHANISM); a deleted credential must exist
      (RESOURCE_NOT_FOUND).
    * One change per user and request, also for different mechanisms: else DUPLICATE_RESOURCE, as in Kafka.
    * Connections that a user has open stay open.
Differs from Kafka:
    * Salts have at most 1024 bytes (UNACCEPTABLE_CREDENTIAL): a client gets the salt before it has
      authenticated.
    * A new user beyond ``scram.users.max`` or ``name.max.length`` is POLICY_VIOLATION.
    * At most 10000 changes in one request (POLICY_VIOLATION for all).
"""

from __future__ import annotations

from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def result(user: str, code: ErrorCode, message: str | None) -> AlterUserScramCredentialsResult:
    """The outcome for one user."""
    return AlterUserScramCredentialsResult(user=user, error_code=code, error_message=message)


def refused(
    request: AlterUserScramCredentialsRequest, code: ErrorCode, message: str | None
) -> AlterUserScramCredentialsResponse:
    """The same refusal for every user."""
    names = [change.name for change in request.deletions] + [change.name for change in request.upsertions]
    return AlterUserScramCredentialsResponse(
        results=[result(name, code, message) for name in dict.fromkeys(names)]
    )


@answers(AlterUserScramCredentialsRequest, refusal=refused, each="results")
def alter_user_scram_credentials(
    request: AlterUserScramCredentialsRequest, context: RequestContext, broker: Broker
) -> Generator[AlterUserScramCredentialsResult | None, None, AlterUserScramCredentialsResponse]:
    broker.authorization.require_on_cluster(context, AclOperation.ALTER)
    outcomes = yield from broker.credentials.alter_in_steps(request.deletions, request.upsertions)
    for user, error in outcomes.items():
        yield (
            result(user, ErrorCode.NONE, None) if error is None else result(user, error.code, error.message)
        )
    return AlterUserScramCredentialsResponse()
