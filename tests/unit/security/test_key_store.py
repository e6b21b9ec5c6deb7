"""Key stores and trust stores: PEM and PKCS12, by file and inline, and the reasons why some are refused."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.security.key_store import as_file, blocks, read_key_store, read_trust_store
from odradek.security.tls_settings import JKS_ADVICE, TlsSettings
from odradek.settings.reading import read_settings
from support.certificates import NOW, authority, server


def pkcs12_file(path: Path, password: str, key: bool = True) -> str:
    private = load_pem_private_key(server().key.encode(), None) if key else None
    own = x509.load_pem_x509_certificate(server().certificate.encode())
    content = pkcs12.serialize_key_and_certificates(
        b"kafka",
        private if key else None,  # type: ignore[arg-type]
        own if key else None,
        [authority().certificate],
        BestAvailableEncryption(password.encode()),
    )
    path.write_bytes(content)
    return str(path)


def pem(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_a_pem_file_has_the_key_and_the_chain(tmp_path: Path) -> None:
    text = f"a comment\n{server().both}between\n{authority().issued.certificate}"

    found = read_key_store(TlsSettings(keystore_location=pem(tmp_path / "s.pem", text)))

    assert found is not None
    assert (found.key, found.password) == (server().key, "")
    assert [each.subject for each in found.certificates] == ["CN=localhost", "CN=test CA"]
    own = found.certificates[0]
    assert own.not_after_ms == int((NOW + timedelta(days=365)).timestamp()) * 1000
    assert own.alternative_names == {"DNS:localhost", "IP:127.0.0.1", "IP:::1"}


@pytest.mark.parametrize("joint", [" ", "\\n", "\n", "\n  "])
def test_inline_pem_may_be_a_single_line(joint: str) -> None:
    key, chain = (joint.join(text.splitlines()) for text in (server().key, server().certificate))

    found = read_key_store(TlsSettings(key=key, certificate_chain=chain))

    assert found is not None
    assert (found.key, found.chain) == (server().key, server().certificate)


def test_without_settings_there_are_no_stores() -> None:
    assert read_key_store(TlsSettings()) is None
    assert read_trust_store(TlsSettings()) is None


def test_a_pkcs12_file_has_the_key_and_the_chain(tmp_path: Path) -> None:
    location = pkcs12_file(tmp_path / "s.p12", "changeit")
    settings = TlsSettings(
        keystore_type="PKCS12", keystore_location=location, keystore_password="changeit",
        truststore_type="PKCS12", truststore_location=location, truststore_password="changeit",
    )  # fmt: skip

    found, trusted = read_key_store(settings), read_trust_store(settings)

    assert found is not None
    assert [each.subject for each in found.certificates] == ["CN=localhost", "CN=test CA"]
    assert (
        load_pem_private_key(found.key.encode(), None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
        )
        == server().key.encode()
    )
    assert len(blocks(trusted or "", "CERTIFICATE")) == 2


def test_a_key_of_openssl_is_taken_too(tmp_path: Path) -> None:
    old = load_pem_private_key(server().key.encode(), None).private_bytes(
        Encoding.PEM, PrivateFormat.TraditionalOpenSSL, BestAvailableEncryption(b"secret")
    )
    location = pem(tmp_path / "s.pem", old.decode() + server().certificate)

    found = read_key_store(TlsSettings(keystore_location=location, key_password="secret"))

    assert found is not None
    assert found.key == old.decode()


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (None, "cannot read {file}: no such file or directory"),
        ("nothing", "expected one private key in PEM, found 0"),
        (lambda: server().key * 2 + server().certificate, "expected one private key in PEM, found 2"),
        (lambda: server().key, "expected a certificate in PEM, found none"),
        (
            lambda: authority().issue("x", ["x"], password="p").both,
            "the private key is encrypted: set ssl.key.password",
        ),
        (b"\xfe\xed\xfe\xed\0\0\0\2", JKS_ADVICE.format(file="{file}", key="ssl.keystore.type")),
        (b"\x30\x82\xff", "{file} is not a PEM file; for a PKCS12 file set the type of the store to PKCS12"),
        ("x" * (1 << 20) + "xx", "cannot read {file}: larger than 1048576 bytes"),
    ],
)  # fmt: skip
def test_an_unusable_key_store_is_refused(tmp_path: Path, content: object, problem: str) -> None:
    file = tmp_path / "server.pem"
    made = content() if callable(content) else content
    if made is not None:
        file.write_bytes(made if isinstance(made, bytes) else str(made).encode())

    with pytest.raises(ConfigError) as error:
        read_key_store(TlsSettings(keystore_location=str(file)))

    assert (error.value.path, error.value.problem) == ("ssl.keystore.location", problem.format(file=file))


def test_a_wrong_password_of_a_pkcs12_file_is_refused(tmp_path: Path) -> None:
    location = pkcs12_file(tmp_path / "s.p12", "changeit")

    with pytest.raises(ConfigError, match="cannot read the PKCS12 file"):
        read_key_store(
            TlsSettings(keystore_type="PKCS12", keystore_location=location, keystore_password="wrong")
        )


@pytest.mark.parametrize(
    ("values", "key", "problem"),
    [
        ({"ssl.keystore.key": "k"}, "ssl.keystore.key",
         "SSL private key is specified, but certificate chain is not specified."),
        ({"ssl.keystore.certificate.chain": "c"}, "ssl.keystore.certificate.chain",
         "SSL certificate chain is specified, but private key is not specified"),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.location": "f"},
         "ssl.keystore.location", "Both SSL key store location and separate private key are specified."),
        ({"ssl.keystore.password": "p", "ssl.keystore.location": "f"}, "ssl.keystore.password",
         "SSL key store password cannot be specified with PEM format, only key password may be specified."),
        ({"ssl.keystore.key": "k", "ssl.keystore.certificate.chain": "c", "ssl.keystore.type": "PKCS12"},
         "ssl.keystore.type", "SSL private key can be specified only for PEM, but key store type is PKCS12."),
        ({"ssl.truststore.password": "p"}, "ssl.truststore.password",
         "SSL trust store password cannot be specified for PEM format."),
        ({"ssl.truststore.location": "f", "ssl.truststore.certificates": "c"}, "ssl.truststore.location",
         "Both SSL trust store location and separate trust certificates are specified."),
        ({"ssl.keystore.type": "JKS", "ssl.keystore.location": "k.jks"}, "ssl.keystore.type",
         JKS_ADVICE.format(file="k.jks", key="ssl.keystore.type")),
        ({"ssl.enabled.protocols": "TLSv1.1"}, "ssl.enabled.protocols",
         "expected one or more of TLSv1.2, TLSv1.3, found 'TLSv1.1'"),
        ({"ssl.client.auth": "maybe"}, "ssl.client.auth",
         "expected one of none, requested, required, found 'maybe'"),
        ({"ssl.principal.mapping.rules": "RULE:x"}, "ssl.principal.mapping.rules",
         "Invalid rule: `RULE:x`, unmatched substring: `RULE:x`"),
    ],
)  # fmt: skip
def test_settings_that_contradict_each_other_are_refused(
    values: dict[str, object], key: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as error:
        read_settings(TlsSettings, PluginConfig("", values))

    assert (error.value.path, error.value.problem) == (key, problem)


def test_openssl_reads_a_text_as_a_file() -> None:
    with as_file("secret") as path:
        content = Path(path).read_text(encoding="utf-8")

    assert content == "secret"
