"""The errors of the client. The message of each is one line for users."""

from __future__ import annotations

from odradek.wire.error_code import ErrorCode


class ClientError(Exception):
    """The operation failed."""


class ConnectFailed(ClientError):
    """No broker could be reached, or the broker closed the connection or sent an unreadable response."""


class Disconnected(ConnectFailed):
    """The broker closed the connection."""


class TimedOut(ClientError):
    """The broker did not answer in time."""


class UnsupportedVersion(ClientError):
    """The broker does not support the API, or no version of it that can express the request."""


class RequestFailed(ClientError):
    """The broker refused a request or an item of it.

    Args:
        code: The broker's error code; UNKNOWN_SERVER_ERROR for a number that Kafka 4.4 does not define.
        message: The broker's message, if it sent one.
        subject: The refused item, such as a resource or a topic.
        throttle_ms: Time to wait before a retry, with THROTTLING_QUOTA_EXCEEDED.
    """

    def __init__(
        self, code: ErrorCode, message: str | None = None, subject: str | None = None, throttle_ms: int = 0
    ) -> None:
        text = f"{code.name}: {message}" if message else code.name
        super().__init__(f"{subject}: {text}" if subject else text)
        self.code = code
        self.message = message
        self.subject = subject
        self.throttle_ms = throttle_ms if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED else 0


def known_code(number: int) -> ErrorCode:
    """The error code with this number. A newer broker may send codes that this client does not know."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def failure(
    number: int, message: str | None = None, subject: str | None = None, throttle_ms: int = 0
) -> RequestFailed | None:
    """The exception for an error code of a response; None for success."""
    if not number:
        return None
    code = known_code(number)
    unknown = code is ErrorCode.UNKNOWN_SERVER_ERROR and number != code
    words = message or (f"error code {number}" if unknown else None)
    return RequestFailed(code, words, subject, throttle_ms)


def check(number: int, message: str | None = None, subject: str | None = None) -> None:
    """Raise the error that a response contains, if any.

    Raises:
        RequestFailed: ``number`` is an error.
    """
    error = failure(number, message, subject)
    if error is not None:
        raise error
