"""IANA's names of cipher suites."""

from __future__ import annotations

import ssl

import pytest

from odradek.security.cipher_suites import TLS_1_3_SUITES, openssl_name, openssl_names


@pytest.mark.parametrize(
    ("iana", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "ECDHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "ECDHE-RSA-AES128-SHA"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
    ],
)
def test_openssl_knows_the_suite_by_its_own_name(iana: str, openssl: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_ciphers("ALL:@SECLEVEL=0")

    assert openssl_name(iana) == openssl
    assert openssl in {each["name"] for each in context.get_ciphers()}


@pytest.mark.parametrize("name", ["ECDHE-RSA-AES256-GCM-SHA384", "", "TLS_AES_256_GCM_SHA384"])
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="expected IANA names"):
        openssl_name(name)


def test_suites_of_tls_1_3_are_used_all_or_not_at_all() -> None:
    with pytest.raises(ValueError, match="add TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256, or"):
        openssl_names(["TLS_AES_256_GCM_SHA384"])

    assert openssl_names([*TLS_1_3_SUITES, "TLS_RSA_WITH_AES_128_GCM_SHA256"]) == ["AES128-GCM-SHA256"]
