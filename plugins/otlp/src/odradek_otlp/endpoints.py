"""What a person writes as an endpoint, and where that is."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

METRICS_PATH = "/v1/metrics"
GRPC_PORT = 4317


def metrics_url(endpoint: str, as_it_is: bool) -> str:
    """The URL to post to.

    Args:
        endpoint: ``http://host:port`` or ``https://host:port``, with a path or without.
        as_it_is: The path is not a base to which ``/v1/metrics`` belongs.

    Raises:
        ValueError: What was expected.
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
    """``host:port``, and whether to speak TLS.

    Args:
        endpoint: ``http://host:port`` is without TLS, ``https://host:port`` with it.
        plain: ``host:port`` alone is without TLS.

    Raises:
        ValueError: What was expected.
    """
    parts = split(endpoint if "://" in endpoint else f"//{endpoint}")
    if parts.scheme not in ("", "http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError(f"expected HOST:PORT, http://HOST:PORT or https://HOST:PORT, found {endpoint!r}")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    secure = parts.scheme == "https" or (not parts.scheme and not plain)
    return f"{host}:{parts.port or GRPC_PORT}", secure


def split(endpoint: str) -> SplitResult:
    """The parts of a URL that has no user, query or fragment and a port that is one.

    Raises:
        ValueError: What was expected. Does not repeat the endpoint where it may hold a password.
    """
    parts = urlsplit(endpoint.strip())
    if "@" in parts.netloc:
        raise ValueError("expected no user in the endpoint: put credentials into headers")
    if parts.query or parts.fragment:
        raise ValueError(f"expected no query and no fragment, found {endpoint!r}")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0 or parts.netloc.endswith(":"):
        raise ValueError(f"expected a port from 1 to 65535, found {endpoint!r}")
    return parts
