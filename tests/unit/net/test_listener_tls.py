"""TLS of a listener: contexts from settings, principals of certificates, and replaced certificates."""

from __future__ import annotations

import ssl
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odradek.net.listener_tls import ListenerTls, stamps
from odradek.net.tls_context import load_tls
from odradek.plugin.config import ConfigError
from odradek.security.principal_mapping import parse_rules
from odradek.security.principals import UnknownPrincipal
from odradek.security.private_ca import LOOPBACK, Issued
from odradek.security.tls_settings import TlsSettings
from support.certificates import authority, client, other_authority, server
from support.tls_handshake import Handshake

TLS_1_3 = ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256")
ECDHE = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


def settings(issued: Issued | None = None, **more: Any) -> TlsSettings:
    found = issued or server()
    base = TlsSettings(
        key=found.key, certificate_chain=found.certificate,
        trusted_certificates=authority().issued.certificate,
    )  # fmt: skip
    return replace(base, **more)


def client_context(issued: Issued | None = None, folder: Path | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=authority().issued.certificate)
    if issued is not None:
        assert folder is not None
        file = folder / "client.pem"
        file.write_text(issued.both)
        context.load_cert_chain(file)
    return context


def principal(tls: ListenerTls, there: ssl.SSLContext) -> str | None:
    pair = Handshake(tls.loaded.context, there)
    pair.shake()
    return tls.principal(pair)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("more", "version", "cipher"),
    [
        ({}, "TLSv1.3", None),
        ({"enabled_protocols": ("TLSv1.2",)}, "TLSv1.2", None),
        ({"cipher_suites": (ECDHE,)}, "TLSv1.2", "ECDHE-ECDSA-AES128-GCM-SHA256"),
        ({"cipher_suites": (*TLS_1_3, ECDHE)}, "TLSv1.3", None),
        ({"cipher_suites": TLS_1_3}, "TLSv1.3", None),
    ],
)
def test_a_listener_speaks_the_versions_and_suites_of_its_settings(
    more: dict[str, Any], version: str, cipher: str | None
) -> None:
    pair = Handshake(load_tls(settings(**more)).context, client_context())

    pair.shake()

    assert pair.client.version() == version
    assert cipher in (None, pair.client.cipher()[0])  # type: ignore[index]


def test_only_suites_of_tls_1_3_exclude_clients_of_tls_1_2() -> None:
    old = client_context()
    old.maximum_version = ssl.TLSVersion.TLSv1_2

    with pytest.raises(ssl.SSLError):
        Handshake(load_tls(settings(cipher_suites=TLS_1_3)).context, old).shake()


@pytest.mark.parametrize(
    ("more", "key", "problem"),
    [
        ({"key": None, "certificate_chain": None}, "ssl.keystore.location",
         "expected a file with the private key and the certificates"),
        ({"certificate_chain": client().certificate}, "ssl.keystore.key",
         "the private key does not belong to the first certificate"),
        ({"certificate_chain": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"},
         "ssl.keystore.key", "cannot read a certificate: not an X.509 certificate"),
        ({"key": authority().issue("x", ["x"], password="right").key, "key_password": "wrong"},
         "ssl.keystore.key", "cannot load the private key and the certificates; is ssl.key.password right?"),
        ({"client_auth": "required", "trusted_certificates": "nothing"}, "ssl.truststore.certificates",
         "expected certificates, found none"),
        ({"cipher_suites": ("TLS_ECDHE_RSA_WITH_RC4_128_SHA",)}, "ssl.cipher.suites",
         "OpenSSL does not have"),
        ({"cipher_suites": (ECDHE,), "enabled_protocols": ("TLSv1.3",)}, "ssl.cipher.suites",
         "has no suite of the versions in ssl.enabled.protocols"),
    ],
)  # fmt: skip
def test_unusable_settings_are_refused(more: dict[str, Any], key: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        ListenerTls("SSL", settings(**more))

    assert error.value.path == key
    assert error.value.problem.startswith(f"listener SSL: {problem}")


def test_an_encrypted_key_is_loaded_with_its_password() -> None:
    issued = authority().issue("localhost", LOOPBACK, password="right")

    pair = Handshake(load_tls(settings(issued, key_password="right")).context, client_context())
    pair.shake()

    assert pair.client.version() == "TLSv1.3"


@pytest.mark.parametrize(
    ("client_auth", "with_certificate", "name"),
    [
        ("none", True, None),
        ("requested", False, None),
        ("requested", True, "User:CN=alice"),
        ("required", True, "User:CN=alice"),
    ],
)
def test_the_principal_is_the_subject_of_the_certificate(
    tmp_path: Path, client_auth: str, with_certificate: bool, name: str | None
) -> None:
    tls = ListenerTls("SSL", settings(client_auth=client_auth))

    found = principal(tls, client_context(client() if with_certificate else None, tmp_path))

    assert found == name


def test_rules_map_the_subject(tmp_path: Path) -> None:
    rules = parse_rules("RULE:^CN=(.*)$/$1/U")
    tls = ListenerTls("SSL", settings(client_auth="required", principal_mapping=rules))

    assert principal(tls, client_context(client(), tmp_path)) == "User:ALICE"


def test_a_certificate_without_a_principal_is_refused(tmp_path: Path) -> None:
    rules = parse_rules("RULE:^CN=bob$/bob/")
    tls = ListenerTls("SSL", settings(client_auth="required", principal_mapping=rules))

    with pytest.raises(UnknownPrincipal, match="No rules apply to CN=alice"):
        principal(tls, client_context(client(), tmp_path))


@pytest.mark.parametrize("issued", [None, other_authority().issue("alice")])
def test_a_missing_or_unknown_certificate_fails_the_handshake(tmp_path: Path, issued: Issued | None) -> None:
    tls = ListenerTls("SSL", settings(client_auth="required"))

    with pytest.raises(ssl.SSLError):
        principal(tls, client_context(issued, tmp_path))


def test_a_client_cannot_resume_a_session_with_its_certificate(tmp_path: Path) -> None:
    contexts = [
        load_tls(settings(client_auth=auth, enabled_protocols=("TLSv1.2",))).context
        for auth in ("none", "required")
    ]
    there = client_context(client(), tmp_path)
    tickets = []
    for context in contexts:
        pair = Handshake(context, there)
        pair.shake()
        assert pair.client.session is not None
        tickets.append(pair.client.session.has_ticket)

    assert tickets == [True, False]


def test_new_certificates_are_used_for_new_connections() -> None:
    tls = ListenerTls("SSL", settings())
    renewed = authority().issue("localhost", LOOPBACK, days=700, kind="rsa")

    tls.take(tls.attempt(settings(renewed)), [])
    pair = Handshake(tls.loaded.context, client_context())
    pair.shake()

    assert pair.client.getpeercert(True) == ssl.PEM_cert_to_DER_cert(renewed.certificate)
    assert (tls.reloads, tls.failed_reloads, tls.is_stale) == (1, 0, False)


@pytest.mark.parametrize(
    ("issued", "problem"),
    [
        (("other", LOOPBACK),
         "listener SSL: Keystore DistinguishedName does not match: existing=CN=localhost, new=CN=other"),
        (("localhost", LOOPBACK[:1]),
         "listener SSL: Keystore SubjectAltNames do not match: "
         "the new certificate lacks IP:127.0.0.1, IP:::1"),
    ],
)  # fmt: skip
def test_a_certificate_for_another_server_changes_nothing(
    issued: tuple[str, tuple[str, ...]], problem: str, caplog: pytest.LogCaptureFixture
) -> None:
    tls = ListenerTls("SSL", settings())
    before = tls.loaded

    tls.take(tls.attempt(settings(authority().issue(*issued))), [])

    assert tls.loaded is before
    assert (tls.reloads, tls.failed_reloads, tls.is_stale) == (0, 1, True)
    assert caplog.records[-1].levelname == "ERROR"
    assert problem in vars(caplog.records[-1])["problem"]


def test_settings_allow_a_certificate_for_another_server() -> None:
    tls = ListenerTls("SSL", settings())
    other = authority().issue("other", ["more"])

    found = tls.attempt(settings(other, allow_dn_changes=True, allow_san_changes=True))

    assert not isinstance(found, ConfigError)


def test_a_good_file_after_a_bad_one_ends_the_alarm() -> None:
    tls = ListenerTls("SSL", settings())

    tls.take(tls.attempt(settings(key="nothing")), [])
    stale = tls.is_stale
    tls.take(tls.attempt(settings()), [])

    assert (stale, tls.is_stale) == (True, False)


def test_a_changed_file_has_another_stamp(tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    found = []
    for text in (None, "one", "three"):
        if text is not None:
            file.write_text(text)
        found.append(stamps(TlsSettings(keystore_location=str(file))))

    assert found[0] == [None]
    assert found[1] != found[2]


def test_the_days_to_expiry_are_those_of_the_certificate() -> None:
    tls = ListenerTls("SSL", settings(authority().issue("localhost", LOOPBACK, days=10)))
    end_ms = tls.loaded.certificate.not_after_ms

    assert tls.days_left(end_ms - 86_400_000) == 1.0
    assert tls.days_left(end_ms + 86_400_000) == -1.0


def test_a_key_file_that_others_can_read_is_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "server.pem"
    file.write_text(server().both)
    file.chmod(0o600)
    by_file = TlsSettings(keystore_location=str(file))

    ListenerTls("SSL", by_file)
    before = list(caplog.records)
    file.chmod(0o644)
    ListenerTls("SSL", by_file)

    assert before == []
    assert [vars(record)["file"] for record in caplog.records] == [str(file)]


EXPIRED = authority().issue("localhost", LOOPBACK, days=0)


def test_an_expired_certificate_at_the_start_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    ListenerTls("SSL", settings())
    before = list(caplog.records)
    ListenerTls("SSL", settings(EXPIRED))

    assert before == []
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "has expired" in record.message
    assert (vars(record)["listener"], vars(record)["subject"]) == ("SSL", "CN=localhost")


def test_an_expired_certificate_does_not_replace_a_valid_one(caplog: pytest.LogCaptureFixture) -> None:
    tls = ListenerTls("SSL", settings())
    before = tls.loaded

    tls.take(tls.attempt(settings(EXPIRED)), [])

    assert tls.loaded is before
    assert (tls.failed_reloads, tls.is_stale) == (1, True)
    assert "listener SSL: the new certificate has expired" in vars(caplog.records[-1])["problem"]


def test_an_expired_certificate_replaces_an_expired_one() -> None:
    tls = ListenerTls("SSL", settings(EXPIRED))

    tls.take(tls.attempt(settings(authority().issue("localhost", LOOPBACK, days=0))), [])

    assert (tls.reloads, tls.is_stale) == (1, False)
