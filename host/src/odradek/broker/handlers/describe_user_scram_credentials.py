"""DescribeUserScramCredentials v0 (KIP-554).

Behavior:
    * Mechanisms and iterations of the named users, or of all; never salts or keys.
    * A user without credentials is RESOURCE_NOT_FOUND, one that is named twice DUPLICATE_RESOURCE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.plugin.authorizer import AclOperation
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


@answers(DescribeUserScramCredentialsRequest, refuses="users", each="results", droppable=True)
def describe_user_scram_credentials(
    request: DescribeUserScramCredentialsRequest, context: RequestContext, broker: Broker
) -> Generator[DescribeUserScramCredentialsResult, None, DescribeUserScramCredentialsResponse]:
    if not broker.authorization.allows_on_cluster(context, AclOperation.DESCRIBE):
        raise ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    times = Counter(user.name for user in request.users or ()) or Counter(broker.credentials.users())
    for user, count in times.items():
        yield described(user, count, broker)
    return DescribeUserScramCredentialsResponse()


def described(user: str, times: int, broker: Broker) -> DescribeUserScramCredentialsResult:
    try:
        if times > 1:
            raise ApiError(
                ErrorCode.DUPLICATE_RESOURCE,
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}",
            )
        found = broker.credentials.of_user(user)
    except ApiError as error:
        return DescribeUserScramCredentialsResult(
            user=user, error_code=error.code, error_message=error.message
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_message=None,
        credential_infos=[
            CredentialInfo(mechanism=mechanism, iterations=credential.iterations)
            for mechanism, credential in sorted(found.items())
        ],
    )
