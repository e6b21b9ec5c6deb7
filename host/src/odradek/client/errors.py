"""What can go wrong between a client and a broker. The message of each is one line for people."""

from __future__ import annotations

from odradek.wire.error_code import ErrorCode


class ClientError(Exception):
    """The operation failed."""


class ConnectFailed(ClientError):
    """No broker could be reached, or it hung up."""


class TimedOut(ClientError):
    """The broker did not answer in time."""


class UnsupportedVersion(ClientError):
    """The broker does not speak an API, or no version of it that can carry the request."""


class RequestFailed(ClientError):
    """The broker refused.

    Args:
        code: Its error code; a number that Kafka 4.3 does not know is UNKNOWN_SERVER_ERROR.
        message: Its own words, if it had any.
        subject: What was refused, such as a resource or a topic.
        throttle_ms: How long to wait, with THROTTLING_QUOTA_EXCEEDED.
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str | None = None,
        subject: str | None = None,
        throttle_ms: int = 0,
    ) -> None:
        text = f"{code.name}: {message}" if message else code.name
        super().__init__(f"{subject}: {text}" if subject else text)
        self.code = code
        self.message = message
        self.subject = subject
        self.throttle_ms = throttle_ms if code is ErrorCode.THROTTLING_QUOTA_EXCEEDED else 0


def known_code(number: int) -> ErrorCode:
    """The code behind a number; a newer broker may have codes that this client does not know."""
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR


def failure(
    number: int, message: str | None = None, subject: str | None = None, throttle_ms: int = 0
) -> RequestFailed | None:
    """What an error code of an answer means; None for success."""
    if not number:
        return None
    code = known_code(number)
    unknown = code is ErrorCode.UNKNOWN_SERVER_ERROR and number != code
    words = message or (f"error code {number}" if unknown else None)
    return RequestFailed(code, words, subject, throttle_ms)


def check(number: int, message: str | None = None, subject: str | None = None) -> None:
    """Let success pass.

    Raises:
        RequestFailed: ``number`` is an error.
    """
    error = failure(number, message, subject)
    if error is not None:
        raise error
