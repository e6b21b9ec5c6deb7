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


def outlets_of(host: ThreadedHost) -> tuple[MetricsOutlets, int]:
    outlets = host.host.outlets
    assert outlets.endpoint is not None
    return outlets, outlets.endpoint.bound_port
