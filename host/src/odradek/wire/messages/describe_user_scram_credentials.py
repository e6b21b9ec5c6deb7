"""DescribeUserScramCredentials, API key 50 (KIP-554).

Source: DescribeUserScramCredentialsRequest.json and DescribeUserScramCredentialsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import field

from odradek.wire.types import Int8, Int16, Int32, Message, String, Struct, only, since


class UserName(Struct):
    """One of `DescribeUserScramCredentialsRequest.users`."""

    name: String = ""


class CredentialInfo(Struct):
    """One of `DescribeUserScramCredentialsResult.credential_infos`."""

    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = 0


class DescribeUserScramCredentialsResult(Struct):
    """One of `DescribeUserScramCredentialsResponse.results`."""

    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)


class DescribeUserScramCredentialsRequest(Message, api_key=50, versions=only(0), flexible=since(0)):
    """List which SCRAM credentials users have."""

    users: list[UserName] | None = field(default_factory=list)
    """Null or empty asks for all."""


class DescribeUserScramCredentialsResponse(Message, answers=DescribeUserScramCredentialsRequest):
    """Answer to `DescribeUserScramCredentialsRequest`."""

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
