"""A connection that negotiates API versions with its broker.

The first request is ApiVersions. A broker that does not support its version answers in version 0 with
UNSUPPORTED_VERSION and, if it knows KIP-511, the range that it supports. Without a range, version 0 is used.
"""

from __future__ import annotations

import importlib
import ssl
from random import uniform
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

import odradek
from odradek.client.address import Address
from odradek.client.channel import Channel
from odradek.client.errors import ClientError, ConnectFailed, Disconnected, UnsupportedVersion, check
from odradek.wire.api_names import api_name
from odradek.wire.codec import decode, encode
from odradek.wire.error_code import ErrorCode
from odradek.wire.errors import WireError
from odradek.wire.header import (
    RequestHeader,
    flexible_request_header,
    flexible_response_header,
    read_response_header,
    request_header,
)
from odradek.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.wire.types import Versions, between

if TYPE_CHECKING:
    from odradek.client.sasl import SaslLogin

SOFTWARE_NAME = "odradek"
LOGIN_HINT = "if its listener requires a login, set security.protocol, sasl.mechanism and sasl.jaas.config"
DEFAULT_TIMEOUT_S = 30.0
"""The timeout of Kafka's command-line tools."""
RENEWED_AFTER = (0.85, 0.95)
"""Share of a session after which the client authenticates again (ExpiringCredentialRefreshConfig.java)."""


class Connection:
    """An open connection with negotiated versions; a context manager.

    Args:
        host: Name or address of the broker.
        port: Port of the broker.
        client_id: The client id that the broker uses for quotas and logs.
        timeout_s: Limit for connecting, and for each request with its response.
        login: How the client authenticates; None for a listener without authentication.
        tls: Encrypts the connection; None for a listener without TLS.

    Raises:
        ClientError: No broker answers, it does not speak Kafka's protocol, or it refuses the login.
    """

    def __init__(
        self,
        host: str,
        port: int,
        client_id: str = SOFTWARE_NAME,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        login: SaslLogin | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.address = Address(host, port)
        self.client_id = client_id
        self.timeout_s = timeout_s
        self.correlation_id = 0
        self.broken = False
        self.login = login
        self.is_trusted = login is not None
        """Whether the broker has answered more than ApiVersions, which it answers before a login."""
        self.renew_s: float | None = None
        """Monotonic time to authenticate again; None if the broker does not ask for it."""
        self.throttle_ms = 0
        """How long the broker wants no further request, as of its last answer."""
        self.channel = Channel(self.address, timeout_s, tls)
        try:
            self.offered = self.negotiate()
            self.authenticate()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection. Closing again does nothing."""
        self.broken = True
        self.channel.close()

    def authenticate(self) -> None:
        """Log in, and plan to do so again before the session ends, at a random time as Java clients do.

        Raises:
            ClientError: The broker refuses the login.
        """
        self.renew_s = None
        if self.login is not None:
            from odradek.client.sasl import log_in  # connections without a login need nothing of security

            lifetime_ms = log_in(self.send, self.login, str(self.address))
            if lifetime_ms:
                self.renew_s = monotonic() + lifetime_ms * uniform(*RENEWED_AFTER) / 1000

    def negotiate(self) -> dict[int, Versions]:
        """The versions that the broker supports, by API key."""
        request = ApiVersionsRequest(
            client_software_name=SOFTWARE_NAME, client_software_version=odradek.__version__
        )
        response = self.api_versions(request, ApiVersionsRequest.VERSIONS.last)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            response = self.api_versions(request, best_api_versions(response))
        check(response.error_code, subject=f"{self.address}: ApiVersions")
        return {row.api_key: between(row.min_version, row.max_version) for row in response.api_keys}

    def api_versions(self, request: ApiVersionsRequest, version: int) -> ApiVersionsResponse:
        """The response in the requested version, or in version 0 if the broker does not support that one."""
        body = self.exchange(request, version)
        if int.from_bytes(body[:2], signed=True) == ErrorCode.UNSUPPORTED_VERSION:
            version = 0
        response: ApiVersionsResponse = self.decoded(ApiVersionsResponse, version, body)
        return response

    def send(self, request: Any, least_version: int = 0, most_version: int | None = None) -> Any:
        """Send a request in the highest common version and wait for the response.

        Args:
            request: A message with ``API_KEY``, ``VERSIONS`` and ``FLEXIBLE``.
            least_version: The lowest version that can express the request.
            most_version: The highest version that can express it; None for the newest.

        Returns:
            The response of the same API.

        Raises:
            UnsupportedVersion: There is no common version. Nothing was sent.
            ClientError: The exchange failed. The connection is closed.
        """
        if self.renew_s is not None and monotonic() >= self.renew_s:
            self.authenticate()
        response_type = answer_type(type(request))
        version = self.version(request, least_version, most_version)
        try:
            response = self.decoded(response_type, version, self.exchange(request, version))
        except BaseException as error:
            self.close()  # a late response would be taken for the response to the next request
            if isinstance(error, Disconnected) and not self.is_trusted:
                raise Disconnected(f"{error}; {LOGIN_HINT}") from None
            raise
        self.is_trusted = True
        self.throttle_ms = getattr(response, "throttle_time_ms", 0)
        return response

    def version(self, request: Any, least_version: int = 0, most_version: int | None = None) -> int:
        """The highest common version.

        Raises:
            UnsupportedVersion: The broker supports no version from ``least_version`` to ``most_version``.
        """
        ours, theirs = request.VERSIONS, self.offered.get(request.API_KEY)
        if most_version is not None:
            ours = between(ours.first, most_version)
        name = api_name(request.API_KEY)
        if theirs is None:
            raise UnsupportedVersion(f"{self.address}: the broker does not support {name}")
        highest = min(ours.last, theirs.last)
        if highest < max(ours.first, theirs.first, least_version):
            first = max(ours.first, least_version)
            raise UnsupportedVersion(
                f"{self.address}: {name} needs a version from {first} to {ours.last}, "
                f"the broker supports {theirs.first} to {theirs.last}"
            )
        return int(highest)

    def exchange(self, request: Any, version: int) -> bytes:
        """Send one request and return the body of the response, without its header."""
        self.correlation_id += 1
        header = RequestHeader(request.API_KEY, version, self.correlation_id, self.client_id)
        try:
            head = request_header(header, flexible_request_header(request, version))
            frame = head + encode(request, version)
        except WireError as error:
            raise ClientError(f"{type(request).__name__} v{version} cannot be encoded: {error}") from error
        answer = self.channel.exchange(frame, self.timeout_s)
        try:
            tagged = flexible_response_header(request, version)
            correlation_id, start = read_response_header(answer, 0, tagged)
        except WireError as error:
            raise ConnectFailed(f"{self.address}: unreadable response header: {error}") from error
        if correlation_id != self.correlation_id:
            raise ConnectFailed(
                f"{self.address}: response to request {correlation_id}, expected {self.correlation_id}"
            )
        return answer[start:]

    def decoded(self, response_type: Any, version: int, body: bytes) -> Any:
        try:
            return decode(response_type, version, body)
        except WireError as error:
            name = response_type.__name__
            raise ConnectFailed(f"{self.address}: unreadable {name} v{version}: {error}") from error


def best_api_versions(refusal: ApiVersionsResponse) -> int:
    """The version of ApiVersions to use after the broker refused the newest."""
    for row in refusal.api_keys:
        if row.api_key == ApiVersionsRequest.API_KEY:
            return min(row.max_version, ApiVersionsRequest.VERSIONS.last)
    return 0


def answer_type(request_type: type[Any]) -> type[Any]:
    """The response type declared in the same module as a request type."""
    module = importlib.import_module(request_type.__module__)
    found: type[Any] = getattr(module, request_type.__name__.removesuffix("Request") + "Response")
    return found
