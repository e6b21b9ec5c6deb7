"""``google.rpc.Status``, the error body of OTLP, without a dependency on its compiled package."""

from __future__ import annotations

from dataclasses import dataclass

from google.protobuf.message import DecodeError

from odradek.otlp import message_classes

RETRY_INFO = "/google.rpc.RetryInfo"
TYPE_PREFIX = "type.googleapis.com"
MESSAGES = {
    "Status": {"code": (1, "int32"), "message": (2, "string"), "details": (3, "Detail*")},
    "Detail": {"type_url": (1, "string"), "value": (2, "bytes")},
    "RetryInfo": {"retry_delay": (1, "Delay")},
    "Delay": {"seconds": (1, "int64"), "nanos": (2, "int32")},
}
"""After google/rpc/{status,error_details}.proto: only the fields that matter."""


@dataclass(frozen=True, slots=True)
class RpcStatus:
    """The endpoint's explanation of a refused request."""

    message: str = ""
    retry_after_s: float | None = None
    """Seconds to wait before a retry; None without ``RetryInfo``: a retry may be futile."""


CLASSES = message_classes("odradek.otlp", MESSAGES)


def read_status(data: bytes) -> RpcStatus:
    """Read the message and the wait; empty if the bytes are not a ``Status``."""
    try:
        status = CLASSES["Status"].FromString(data)
        after_s = None
        for detail in status.details:  # type: ignore[attr-defined]
            if detail.type_url.endswith(RETRY_INFO):
                delay = CLASSES["RetryInfo"].FromString(detail.value).retry_delay  # type: ignore[attr-defined]
                after_s = max(0.0, delay.seconds + delay.nanos / 1e9)
    except DecodeError:
        return RpcStatus()
    return RpcStatus(status.message, after_s)  # type: ignore[attr-defined]


def status_bytes(code: int, message: str, retry_after_s: int | None = None) -> bytes:
    """A ``Status`` for an error, with a ``RetryInfo`` if the request should be repeated."""
    status = CLASSES["Status"](code=code, message=message)
    if retry_after_s is not None:
        delay = CLASSES["RetryInfo"](retry_delay=CLASSES["Delay"](seconds=retry_after_s))
        status.details.add(type_url=TYPE_PREFIX + RETRY_INFO, value=delay.SerializeToString())  # type: ignore[attr-defined]
    data: bytes = status.SerializeToString()
    return data
