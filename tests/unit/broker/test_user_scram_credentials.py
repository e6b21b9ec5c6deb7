"""AlterUserScramCredentials and DescribeUserScramCredentials, with Kafka's error codes and messages."""

from __future__ import annotations

import pytest

from odradek.broker.credentials import Credentials
from odradek.security.scram import ScramMechanism
from odradek.security.scram_credential import is_password
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from odradek.wire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResult,
    UserName,
)
from support.broker import BrokerClient

SHA_256, SHA_512 = ScramMechanism
DONE = (ErrorCode.NONE, None)
TWICE = (ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request")


def upsertion(
    name: str, mechanism: int = SHA_256, iterations: int = 4096, password: str = "secret"
) -> ScramCredentialUpsertion:
    salted = SHA_256.salted_password(password, b"salt", 4096)
    return ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=salted
    )


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name=name, mechanism=mechanism)


def altered(
    client: BrokerClient, *changes: ScramCredentialUpsertion | ScramCredentialDeletion
) -> dict[str, tuple[int, str | None]]:
    request = AlterUserScramCredentialsRequest(
        deletions=[change for change in changes if isinstance(change, ScramCredentialDeletion)],
        upsertions=[change for change in changes if isinstance(change, ScramCredentialUpsertion)],
    )
    results: list[AlterUserScramCredentialsResult] = client.send(request).results
    assert len({row.user for row in results}) == len(results)
    return {row.user: (row.error_code, row.error_message) for row in results}


def described(client: BrokerClient, *names: str) -> list[DescribeUserScramCredentialsResult]:
    users = [UserName(name=name) for name in names] or None
    response = client.send(DescribeUserScramCredentialsRequest(users=users))
    assert response.error_code == 0
    found: list[DescribeUserScramCredentialsResult] = response.results
    return found


def test_an_empty_salted_password_fails_as_in_kafka() -> None:
    client = BrokerClient()
    empty = upsertion("alice")
    empty.salted_password = b""

    outcome = altered(client, empty, upsertion("bob"))

    assert outcome == {"alice": (ErrorCode.UNKNOWN_SERVER_ERROR, None), "bob": DONE}


def test_a_password_is_set_and_described_without_secrets() -> None:
    client = BrokerClient()

    outcome = altered(client, upsertion("alice", iterations=5000))
    rows = described(client)

    assert outcome == {"alice": DONE}
    info = CredentialInfo(mechanism=SHA_256, iterations=5000)
    assert rows == [
        DescribeUserScramCredentialsResult(user="alice", error_message=None, credential_infos=[info])
    ]


def test_the_password_that_was_set_authenticates() -> None:
    client = BrokerClient()

    altered(client, upsertion("alice", password="old"))
    altered(client, upsertion("alice", password="new"))

    found = client.broker.credentials.credential(SHA_256, "alice")
    assert found is not None
    assert [is_password(SHA_256, found, password) for password in ("old", "new")] == [False, True]


def test_credentials_survive_a_restart() -> None:
    client = BrokerClient()

    altered(client, upsertion("alice"), upsertion("bob", SHA_512))
    altered(client, deletion("bob", SHA_512))

    again = Credentials(client.broker.metadata)
    assert again.users() == ["alice"]
    assert again.by_user == client.broker.credentials.by_user


def test_a_long_salt_is_refused() -> None:
    client = BrokerClient()
    salty = upsertion("alice")
    salty.salt = bytes(1025)

    outcome = altered(client, salty)

    assert outcome == {"alice": (ErrorCode.UNACCEPTABLE_CREDENTIAL, "Salt is too long")}
    assert client.broker.credentials.users() == []


def test_too_many_changes_refuse_the_whole_request() -> None:
    client = BrokerClient()

    outcome = altered(client, upsertion("alice"), *(deletion(str(number)) for number in range(10_000)))

    assert len(outcome) == 10_001
    assert {code for code, _ in outcome.values()} == {ErrorCode.POLICY_VIOLATION}
    assert client.broker.credentials.users() == []


def test_an_empty_request_has_an_empty_answer() -> None:
    client = BrokerClient()

    outcome = altered(client)

    assert outcome == {}


@pytest.mark.parametrize(
    ("change", "code", "message"),
    [
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"),
        (upsertion("x", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("x", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (deletion("x", -1), ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"),
        (upsertion("x", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("x", iterations=-1), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations"),
        (upsertion("x", iterations=16_385), ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations"),
        (
            deletion("x"),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
        (
            deletion("alice", SHA_512),
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to delete a user credential that does not exist",
        ),
    ],
)
def test_a_bad_change_is_refused_and_the_others_are_made(
    change: ScramCredentialUpsertion | ScramCredentialDeletion, code: ErrorCode, message: str
) -> None:
    client = BrokerClient()
    altered(client, upsertion("alice"))

    outcome = altered(client, change, upsertion("bob"))

    assert outcome == {change.name: (code, message), "bob": DONE}
    assert client.broker.credentials.users() == ["alice", "bob"]


@pytest.mark.parametrize(
    "changes",
    [
        (upsertion("alice"), upsertion("alice")),
        (upsertion("alice"), upsertion("alice", SHA_512)),
        (deletion("alice"), upsertion("alice")),
        (deletion("alice"), deletion("alice")),
        (upsertion("alice"), upsertion("alice"), upsertion("alice")),
    ],
)
def test_two_changes_of_one_user_are_refused(
    changes: tuple[ScramCredentialUpsertion | ScramCredentialDeletion, ...],
) -> None:
    client = BrokerClient()
    altered(client, upsertion("alice", password="before"))
    before = client.broker.credentials.by_user["alice"]

    outcome = altered(client, *changes)

    assert outcome == {"alice": TWICE}
    assert client.broker.credentials.by_user["alice"] == before


def test_a_user_without_credentials_is_not_found() -> None:
    client = BrokerClient()
    altered(client, upsertion("alice"))

    rows = described(client, "nobody", "alice")

    assert [(row.user, row.error_code, row.error_message) for row in rows] == [
        (
            "nobody",
            ErrorCode.RESOURCE_NOT_FOUND,
            "Attempt to describe a user credential that does not exist: nobody",
        ),
        ("alice", ErrorCode.NONE, None),
    ]


def test_a_repeated_user_is_refused() -> None:
    client = BrokerClient()
    altered(client, upsertion("alice"))

    (row,) = described(client, "alice", "alice")

    assert row.error_code == ErrorCode.DUPLICATE_RESOURCE
    assert row.error_message == (
        "Cannot describe SCRAM credentials for the same user twice in a single request: alice"
    )
    assert row.credential_infos == []


def test_an_empty_list_describes_all_users() -> None:
    client = BrokerClient()
    altered(client, upsertion("bob", SHA_512), upsertion("alice"))

    response = client.send(DescribeUserScramCredentialsRequest(users=[]))

    assert [row.user for row in response.results] == ["alice", "bob"]
