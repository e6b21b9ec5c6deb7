"""Fetching keys from files and over the network."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.net.jwks_fetch import MAX_BYTES, MAX_REQUESTS, BadJwksUrl, jwks_fetcher
from support.issuer import issuing, own_certificate
from support.tokens import jwks


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "the keys.json"
    file.write_bytes(b"{}")

    assert jwks_fetcher(file.as_uri())() == b"{}"


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    fetch = jwks_fetcher((tmp_path / "keys.json").as_uri())

    with pytest.raises(FileNotFoundError):
        fetch()


def test_a_large_file(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(bytes(MAX_BYTES + 1))

    with pytest.raises(OSError, match="larger than 1048576 bytes"):
        jwks_fetcher(file.as_uri())()


@pytest.mark.parametrize(
    "url",
    [
        "http://issuer.example/keys",
        "ftp://issuer.example/keys",
        "file://issuer/keys",
        "https:///keys",
        "file:",
        "/etc/keys",
        "",
    ],
)
def test_other_addresses(url: str) -> None:
    with pytest.raises(BadJwksUrl, match="expected https://HOST/PATH"):
        jwks_fetcher(url)


def test_http_on_this_machine() -> None:
    with issuing() as issuer:
        document = jwks_fetcher(issuer.url("/keys"))()

    assert document == jwks()


def test_https_with_a_certificate_of_its_own(tmp_path: Path) -> None:
    ca, context = own_certificate(tmp_path)

    with issuing(context) as issuer:
        document = jwks_fetcher(issuer.url("/keys"), str(ca))()

    assert document == jwks()


def test_https_with_an_unknown_certificate(tmp_path: Path) -> None:
    _, context = own_certificate(tmp_path)

    with issuing(context) as issuer, pytest.raises(OSError, match="CERTIFICATE_VERIFY_FAILED"):
        jwks_fetcher(issuer.url("/keys"))()


def test_a_large_document() -> None:
    with issuing() as issuer:
        issuer.keys = bytes(MAX_BYTES + 1)

        with pytest.raises(ValueError, match="more than 1048576 bytes"):
            jwks_fetcher(issuer.url("/keys"))()


def test_a_redirect_on_the_same_host() -> None:
    with issuing() as issuer:
        issuer.redirects["/old"] = issuer.url("/keys")

        document = jwks_fetcher(issuer.url("/old"))()

    assert document == jwks()


@pytest.mark.parametrize("target", ["http://127.0.0.1:1/keys", "https://127.0.0.1/keys", "file:///etc/hosts"])
def test_a_redirect_to_another_host(target: str) -> None:
    with issuing() as issuer:
        issuer.redirects["/keys"] = target

        with pytest.raises(OSError, match=r"(?i)redirect"):
            jwks_fetcher(issuer.url("/keys"))()


def test_redirects_in_a_circle() -> None:
    with issuing() as issuer:
        issuer.redirects["/keys"] = issuer.url("/keys")

        with pytest.raises(OSError, match="HTTP 302"):
            jwks_fetcher(issuer.url("/keys"))()

        assert len(issuer.asked) == MAX_REQUESTS
