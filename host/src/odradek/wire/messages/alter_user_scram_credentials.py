"""AlterUserScramCredentials, API key 51 (KIP-554).

Source: AlterUserScramCredentialsRequest.json and AlterUserScramCredentialsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Bytes, Int8, Int16, Int32, Message, String, Struct, only, since


class ScramCredentialDeletion(Struct):
    """One of `AlterUserScramCredentialsRequest.deletions`."""

    name: String = ""
    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""


class ScramCredentialUpsertion(Struct):
    """One of `AlterUserScramCredentialsRequest.upsertions`."""

    name: String = ""
    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


class AlterUserScramCredentialsResult(Struct):
    """One of `AlterUserScramCredentialsResponse.results`."""

    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class AlterUserScramCredentialsRequest(Message, api_key=51, versions=only(0), flexible=since(0)):
    """Set and remove SCRAM credentials."""

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)


class AlterUserScramCredentialsResponse(Message, answers=AlterUserScramCredentialsRequest):
    """Answer to `AlterUserScramCredentialsRequest`."""

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)
