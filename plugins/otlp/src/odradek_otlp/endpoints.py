"""URLs and gRPC targets from the endpoints that users configure."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

METRICS_PATH = "/v1/metrics"
GRPC_PORT = 4317


def metrics_url(endpoint: str, as_it_is: bool) -> str:
    """The URL to post to.

    Args:
        endpoint: ``http://host:port`` or ``https://host:port``, with a path or without.
        as_it_is: Use the path unchanged; otherwise ``/v1/metrics`` is appended to it.

    Raises:
        ValueError: The endpoint is malformed; the message says what was expected.
    """
    parts = split(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"expected http://HOST:PORT or https://HOST:PORT, found {endpoint!r}")
    path = parts.path or "/"
    if not as_it_is:
        path = path.rstrip("/")
        path = path if path.endswith(METRICS_PATH) else path + METRICS_PATH
    return f"{parts.scheme}://{parts.netloc}{path}"


def grpc_target(endpoint: str, plain: bool) -> tuple[str, bool]:
    """``host:port``, and whether to use TLS.

    Args:
        endpoint: ``http://host:port`` is without TLS, ``https://host:port`` with it.
        plain: Whether an endpoint without a scheme is without TLS.

    Raises:
        ValueError: The endpoint is malformed; the message says what was expected.
    """
    parts = split(endpoint if "://" in endpoint else f"//{endpoint}")
    if parts.scheme not in ("", "http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(f"expected HOST:PORT, http://HOST:PORT or https://HOST:PORT, found {endpoint!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    secure = parts.scheme == "https" or (not parts.scheme and not plain)
    return f"{host}:{parts.port or GRPC_PORT}", secure


def split(endpoint: str) -> SplitResult:
    """Split a URL without user, query and fragment, and with a valid port.

    Raises:
        ValueError: The endpoint is malformed; the message says what was expected. It does not repeat an
            endpoint that may hold a password.
    """
    parts = urlsplit(endpoint.strip())
    if "@" in parts.netloc:
        raise ValueError("expected no user or password in the endpoint: put credentials into headers")
    if parts.query or parts.fragment:
        raise ValueError(f"expected no query and no fragment, found {endpoint!r}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(f"expected a port from 1 to 65535, found {endpoint!r}")
    return parts
