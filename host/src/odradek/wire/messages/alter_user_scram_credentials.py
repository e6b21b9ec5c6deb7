"""AlterUserScramCredentials, API key 51 (KIP-554).

Source: AlterUserScramCredentialsRequest.json and AlterUserScramCredentialsResponse.json, Kafka 4.3.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from odradek.wire.types import Bytes, Int8, Int16, Int32, String, Versions, only, since


@dataclass(slots=True, kw_only=True)
class ScramCredentialDeletion:
    """One of `AlterUserScramCredentialsRequest.deletions`."""

    name: String = ""
    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""


@dataclass(slots=True, kw_only=True)
class ScramCredentialUpsertion:
    """One of `AlterUserScramCredentialsRequest.upsertions`."""

    name: String = ""
    mechanism: Int8 = 0
    """1 SCRAM-SHA-256, 2 SCRAM-SHA-512."""
    iterations: Int32 = 0
    salt: Bytes = b""
    salted_password: Bytes = b""


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResult:
    """One of `AlterUserScramCredentialsResponse.results`."""

    user: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsRequest:
    """Set and remove SCRAM credentials."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    deletions: list[ScramCredentialDeletion] = field(default_factory=list)
    upsertions: list[ScramCredentialUpsertion] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class AlterUserScramCredentialsResponse:
    """Answer to `AlterUserScramCredentialsRequest`."""

    API_KEY: ClassVar[int] = 51
    VERSIONS: ClassVar[Versions] = only(0)
    FLEXIBLE: ClassVar[Versions] = since(0)

    throttle_time_ms: Int32 = 0
    results: list[AlterUserScramCredentialsResult] = field(default_factory=list)
