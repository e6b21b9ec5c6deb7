"""The probes of a process."""

from __future__ import annotations

import urllib.error
import urllib.request

from odradek.meters.metrics_outlets import MetricsOutlets
from support.hosts import ThreadedHost


def get(port: int, path: str) -> tuple[int, str]:
    """The status and the text of an answer; a connection that is refused has status 0."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()
    except urllib.error.URLError:
        return 0, ""


def metrics_port(host: ThreadedHost) -> int:
    """The port of the listener for metrics and probes."""
    endpoint = host.host.outlets.endpoint
    assert endpoint is not None
    return endpoint.bound_port


def outlets_of(host: ThreadedHost) -> tuple[MetricsOutlets, int]:
    return host.host.outlets, metrics_port(host)
