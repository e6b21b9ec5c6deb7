"""AlterUserScramCredentials and DescribeUserScramCredentials (KIP-554)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from odradek.client.cluster import Cluster
from odradek.client.errors import RequestFailed, check, failure
from odradek.security.scram import ScramMechanism
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)

Iterations = Mapping[int, int]
"""Iterations by mechanism: all that a broker reveals of a user's credentials."""


def new_credential(
    user: str, mechanism: ScramMechanism, password: str, iterations: int, salt: bytes
) -> ScramCredentialUpsertion:
    """Salt a password for the broker, which never receives the password itself."""
    return ScramCredentialUpsertion(
        name=user,
        mechanism=mechanism,
        iterations=iterations,
        salt=salt,
        salted_password=mechanism.salted_password(password, salt, iterations),
    )


def describe(cluster: Cluster, users: Sequence[str] | None) -> dict[str, Iterations | RequestFailed]:
    """Describe users and return the result of each; None requests all users."""
    request = DescribeUserScramCredentialsRequest(
        users=None if users is None else [UserName(name=user) for user in users]
    )
    response: DescribeUserScramCredentialsResponse = cluster.any().send(request)
    check(response.error_code, response.error_message, "DescribeUserScramCredentials")
    return {
        row.user: failure(row.error_code, row.error_message, row.user)
        or {found.mechanism: found.iterations for found in row.credential_infos}
        for row in response.results
    }


def alter(
    cluster: Cluster,
    deletions: Sequence[ScramCredentialDeletion],
    upsertions: Sequence[ScramCredentialUpsertion],
) -> dict[str, RequestFailed | None]:
    """Change users and return the result of each."""
    request = AlterUserScramCredentialsRequest(deletions=list(deletions), upsertions=list(upsertions))
    response: AlterUserScramCredentialsResponse = cluster.controller().send(request)
    return {row.user: failure(row.error_code, row.error_message, row.user) for row in response.results}
