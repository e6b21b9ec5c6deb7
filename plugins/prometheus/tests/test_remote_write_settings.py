"""The keys ``remote_write.*`` of the plugin's table."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from odradek.endpoints import SecretKind
from odradek.plugin import ConfigError, Forwarder, PluginConfig
from odradek.temporality import KeepsTotals
from odradek_prometheus import odradek_forwarder
from odradek_prometheus.remote_write.remote_write_forwarder import RemoteWriteForwarder
from odradek_prometheus.remote_write.remote_write_settings import RemoteWriteSettings, read_remote_write

URL = "http://localhost:9090/api/v1/write"


def read(**keys: object) -> RemoteWriteSettings | None:
    dotted = {name if "." in name else name.replace("_", "."): value for name, value in keys.items()}
    table = {f"remote_write.{name}": value for name, value in dotted.items()}
    return read_remote_write(PluginConfig("plugins.prometheus", table))


def test_without_keys_there_is_no_remote_write() -> None:
    assert read() is None


def test_the_url_is_enough_but_for_the_file(tmp_path: Path) -> None:
    settings = read(url=URL, totals_file=str(tmp_path / "totals.db"))

    assert settings is not None
    assert (settings.url, settings.secure, settings.protocol) == (URL, False, "auto")
    assert settings.labels == (("job", "kafka-clients"),)
    assert settings.totals.file == tmp_path / "totals.db"
    assert (settings.samples_per_request, settings.requests_in_flight, settings.resend_ms) == (
        2_000,
        4,
        60_000,
    )


def test_all_keys(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("user:password")
    settings = read(
        url="https://mimir/api/v1/push?tenant=a",
        totals_file=str(tmp_path / "totals.db"),
        totals_max_series=7,
        protocol="1.0",
        labels_job="",
        labels_instance="host-1",
        **{"headers.X-Scope-OrgID": "a", "basic.auth.file": str(secret)},
        timeout_ms=3_000,
        connect_timeout_ms=1_000,
        requests_in_flight=2,
        samples_per_request=10,
        resend_ms=0,
    )

    assert settings is not None
    assert settings.url == "https://mimir/api/v1/push?tenant=a"
    assert (settings.secure, settings.protocol, settings.labels) == (True, "1.0", (("instance", "host-1"),))
    assert settings.headers == {"x-scope-orgid": "a"}
    assert settings.secrets == {SecretKind.BASIC: secret}
    assert (settings.timeout_ms, settings.connect_timeout_ms) == (3_000, 1_000)
    assert (settings.requests_in_flight, settings.samples_per_request, settings.resend_ms) == (2, 10, 0)
    assert settings.totals.limits.max_streams == 7


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"protocol": "2.0"}, "url: expected the URL of a receiver"),
        ({"url": "localhost:9090"}, "url: expected http://HOST:PORT/PATH"),
        ({"url": "http://user:secret@localhost/w"}, "url: expected no user or password"),
        (
            {"url": "http://localhost:9090"},
            "url: expected a URL with the receiver's path, for Prometheus 'http:",
        ),
        ({"url": URL, "protocol": "3.0"}, "protocol: expected one of auto, 2.0, 1.0"),
        ({"url": URL, "labels.__x": "1"}, "labels.__x: expected a label"),
        ({"url": URL, "labels.a-b": "1"}, "labels.a-b: expected a label"),
        ({"url": URL, "headers.content-type": "a"}, "headers.content-type: the plugin sets"),
        ({"url": URL, "headers.a": "\n"}, "headers.a: expected printable ASCII"),
        ({"url": URL, "headers.a b": "1"}, "headers.a b: expected the name of a header"),
        (
            {"url": URL, "totals_file": "/missing/totals.db"},
            "totals.file: expected a file in an existing folder",
        ),
        ({"url": URL, "resend_ms": -1}, "resend.ms: expected a whole number from 0"),
        ({"url": URL, "resend": 1}, "resend: unknown key (did you mean resend.ms?)"),
        ({"url": URL, "bearer_token_file": "/missing"}, "bearer.token.file: expected a file"),
        ({"url": URL, "client_key_file": __file__}, "client.certificate.file: expected both"),
    ],
)
def test_errors_name_the_key(keys: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(**keys)

    assert str(caught.value).startswith(f"plugins.prometheus.remote_write.{problem}")
    assert "secret" not in str(caught.value)


def test_certificates_need_https(tmp_path: Path) -> None:
    ca = Path(ssl.get_default_verify_paths().cafile or "")
    if not ca.is_file():
        pytest.skip("no CA file on this machine")
    with pytest.raises(ConfigError, match="url: expected https://"):
        read(url=URL, certificate_file=str(ca))


def test_the_hook_offers_a_destination_for_each(tmp_path: Path) -> None:
    table = {
        "listener": "http://127.0.0.1:0",
        "totals.file": str(tmp_path / "scrape.db"),
        "remote_write.url": URL,
        "remote_write.totals.file": str(tmp_path / "remote.db"),
    }
    config = PluginConfig("plugins.prometheus", table)

    found = odradek_forwarder(config)
    config.finish()

    assert isinstance(found, dict)
    assert list(found) == ["scrape", "remote_write"]
    remote = found["remote_write"]
    assert isinstance(remote, RemoteWriteForwarder)
    assert isinstance(remote, Forwarder)
    assert isinstance(remote, KeepsTotals)


def test_two_destinations_need_two_files(tmp_path: Path) -> None:
    totals = str(tmp_path / "totals.db")
    table = {"listener": "http://127.0.0.1:0", "totals.file": totals}
    table |= {"remote_write.url": URL, "remote_write.totals.file": totals}

    with pytest.raises(ConfigError, match="expected a file of its own"):
        odradek_forwarder(PluginConfig("plugins.prometheus", table))
