"""DescribeUserScramCredentials, API key 50 (KIP-554).

Source: DescribeUserScramCredentialsRequest.json and DescribeUserScramCredentialsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Int8, Int16, Int32, String, Versions, only, since


@dataclass(slots=True, kw_only=True)
class UserName:
    """One of `DescribeUserScramCredentialsRequest.users`."""

    name: String = ""


@dataclass(slots=True, kw_only=True)
class CredentialInfo:
    """One of `DescribeUserScramCredentialsResult.credential_infos`."""

    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = 0


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResult:
    """One of `DescribeUserScramCredentialsResponse.results`."""

    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""
    credential_infos: list[CredentialInfo] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsRequest:
    """List which SCRAM credentials users have."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    users: list[UserName] | None = field(default_factory=list)
    """Null or empty asks for all."""


@dataclass(slots=True, kw_only=True)
class DescribeUserScramCredentialsResponse:
    """Answer to `DescribeUserScramCredentialsRequest`."""

    API_KEY: ClassVar[int] = 50
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: list[DescribeUserScramCredentialsResult] = field(default_factory=list)
