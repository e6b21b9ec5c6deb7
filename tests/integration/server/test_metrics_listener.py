"""The endpoint for Prometheus: plain, with TLS, with client certificates, with a token."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from odradek.plugin.config import ConfigError
from odradek.programs.config import load_config
from support.certificates import Files
from support.hosts import ThreadedHost, running_host
from support.probes import metrics_port

HTTPS = "metrics.listener=https://localhost:0"


def scrape(host: ThreadedHost, trusted: ssl.SSLContext | None = None, authorization: str = "") -> str:
    """The metrics, or the status of a refusal."""
    scheme = "http" if trusted is None else "https"
    request = urllib.request.Request(f"{scheme}://localhost:{metrics_port(host)}/metrics")
    if authorization:
        request.add_header("Authorization", authorization)
    try:
        with urllib.request.urlopen(request, timeout=5, context=trusted) as response:
            text: str = response.read().decode()
            return text
    except urllib.error.HTTPError as error:
        with error:
            return f"{error.code} {error.headers['WWW-Authenticate']}"


def test_metrics_are_scraped_with_tls(tmp_path: Path) -> None:
    files = Files(tmp_path)

    with running_host(tmp_path / "data", HTTPS, *files.settings) as host:
        text = scrape(host, ssl.create_default_context(cafile=files.ca))

    assert "odradek_connections" in text
    assert 'listener="metrics"' in text  # the days that its certificate is valid
    assert f'odradek_up{{cluster_name="{host.host.broker.cluster_id}"' in text


def test_metrics_need_a_client_certificate_if_the_listener_says_so(tmp_path: Path) -> None:
    files = Files(tmp_path)
    required = "listener.name.metrics.ssl.client.auth=required"
    stranger, known = (ssl.create_default_context(cafile=files.ca) for _ in range(2))
    known.load_cert_chain(files.client)

    with running_host(tmp_path / "data", HTTPS, required, *files.settings) as host:
        with pytest.raises((OSError, urllib.error.URLError)):
            scrape(host, stranger)
        text = scrape(host, known)

    assert "odradek_connections" in text


def test_metrics_need_the_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("s3cret-token\n")
    token.chmod(0o600)
    settings = ("metrics.listener=http://localhost:0", f"metrics.listener.token=${{file:{token}}}")

    with running_host(tmp_path / "data", *settings) as host:
        refused = [scrape(host, None, text) for text in ("", "Bearer wrong", "Basic s3cret-token")]
        text = scrape(host, None, "Bearer s3cret-token")

    assert refused == ["401 Bearer"] * 3
    assert "odradek_connections" in text


def test_a_client_that_says_nothing_holds_up_no_other(tmp_path: Path) -> None:
    files = Files(tmp_path)

    with (
        running_host(tmp_path / "data", HTTPS, *files.settings) as host,
        socket.create_connection(("localhost", metrics_port(host))),
    ):
        text = scrape(host, ssl.create_default_context(cafile=files.ca))

    assert "odradek_connections" in text


@pytest.mark.parametrize(
    ("override", "problem"),
    [
        ("metrics.listener=ftp://h:1", "metrics.listener: expected http://HOST:PORT or https://HOST:PORT"),
        ("listener.name.metrics.ssl.client.auth=required", "no listener has the name metrics"),
    ],
)
def test_a_bad_setting_stops_the_start(override: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        load_config(overrides=[override])
