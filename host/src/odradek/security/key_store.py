"""Keys and certificates as PEM, from the files or texts of `TlsSettings`."""

from __future__ import annotations

import os
import re
import tempfile
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.bounds.small_file import expanded, read_small_file
from odradek.plugin.config import ConfigError
from odradek.security.certificate import BadCertificate, Certificate, read_certificate
from odradek.security.tls_settings import (
    JKS_ADVICE,
    KEYSTORE_CHAIN,
    KEYSTORE_KEY,
    KEYSTORE_LOCATION,
    KEYSTORE_TYPE,
    PKCS12,
    TRUSTSTORE_CERTIFICATES,
    TRUSTSTORE_LOCATION,
    TRUSTSTORE_TYPE,
    TlsSettings,
)

BLOCK: Final = re.compile(
    r"-+BEGIN (?P<label>[A-Z0-9 ]+)-+\s(?P<body>[^-]*(?:-(?!-)[^-]*)*)-+END (?P=label)-+"
)
CERTIFICATE, PRIVATE_KEY = "CERTIFICATE", "PRIVATE KEY"
JKS_MAGIC: Final = b"\xfe\xed\xfe\xed"
LINE: Final = 64
MOST_BYTES: Final = 1 << 20
"""The largest file that is read: a bundle of all public authorities has a quarter of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyStore:
    """A private key and the certificates that belong to it."""

    key: str
    """PEM, perhaps encrypted."""
    chain: str
    """PEM, the own certificate first."""
    password: str
    """The password of the key; empty if there is none."""
    source: str
    """The setting that it came from."""

    @property
    def certificates(self) -> list[Certificate]:
        """The chain, the own certificate first.

        Raises:
            ConfigError: A block of the chain is not a certificate.
        """
        try:
            return [read_certificate(der(each)) for each in blocks(self.chain, CERTIFICATE)]
        except (BadCertificate, ValueError) as error:
            raise ConfigError(self.source, f"cannot read a certificate: {error}") from None

    def refused(self, error: Exception) -> ConfigError:
        """The error of a key that OpenSSL does not load, from OpenSSL's."""
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            problem = "the private key does not belong to the first certificate"
        elif self.password:
            problem = "cannot load the private key and the certificates; is ssl.key.password right?"
        else:
            problem = f"cannot load the private key and the certificates: {error}"
        return ConfigError(self.source, problem)


def read_key_store(settings: TlsSettings) -> KeyStore | None:
    """Read the key store; None if there is none.

    Raises:
        ConfigError: A file cannot be read, or does not contain one key and its certificates.
    """
    if settings.key is not None:
        chain = settings.certificate_chain or ""
        return key_store((settings.key, KEYSTORE_KEY), (chain, KEYSTORE_CHAIN), settings.key_password)
    if settings.keystore_location is None:
        return None
    content = file_content(settings.keystore_location, KEYSTORE_LOCATION, KEYSTORE_TYPE)
    if settings.keystore_type == PKCS12:
        key, chain = from_pkcs12(content, settings.keystore_password, KEYSTORE_LOCATION)
        if not key:
            raise ConfigError(KEYSTORE_LOCATION, f"{settings.keystore_location} has no private key")
        return KeyStore(key=key, chain=chain, password="", source=KEYSTORE_LOCATION)
    text = pem_text(content, settings.keystore_location, KEYSTORE_LOCATION)
    return key_store((text, KEYSTORE_LOCATION), (text, KEYSTORE_LOCATION), settings.key_password)


def key_store(key: tuple[str, str], chain: tuple[str, str], password: str | None) -> KeyStore:
    """Find the key and the certificates in PEM texts.

    Args:
        key: The text with the key, and the setting that it came from.
        chain: The same for the certificates.
        password: The password of the key.

    Raises:
        ConfigError: There is not one key, or there is no certificate.
    """
    keys, certificates = blocks(key[0], PRIVATE_KEY), blocks(chain[0], CERTIFICATE)
    if len(keys) != 1:
        raise ConfigError(key[1], f"expected one private key in PEM, found {len(keys)}")
    if not certificates:
        raise ConfigError(chain[1], "expected a certificate in PEM, found none")
    if "ENCRYPTED" in keys[0] and not password:
        raise ConfigError(key[1], "the private key is encrypted: set ssl.key.password")
    return KeyStore(key=keys[0], chain="".join(certificates), password=password or "", source=key[1])


def read_trust_store(settings: TlsSettings) -> str | None:
    """Read the certificates of trusted authorities as PEM; None if there is no trust store.

    Raises:
        ConfigError: A file cannot be read, or has no certificate.
    """
    if settings.trusted_certificates is not None:
        source, text = TRUSTSTORE_CERTIFICATES, settings.trusted_certificates
    elif settings.truststore_location is None:
        return None
    else:
        source = TRUSTSTORE_LOCATION
        content = file_content(settings.truststore_location, source, TRUSTSTORE_TYPE)
        if settings.truststore_type == PKCS12:
            _, text = from_pkcs12(content, settings.truststore_password, source)
        else:
            text = pem_text(content, settings.truststore_location, source)
    found = blocks(text, CERTIFICATE)
    if not found:
        raise ConfigError(source, "expected certificates, found none")
    return "".join(found)


def file_content(location: str, key: str, type_key: str) -> bytes:
    """Return the content of a file.

    Raises:
        ConfigError: It cannot be read, is too large, or is a JKS file.
    """
    try:
        content = read_small_file(expanded(location), MOST_BYTES)
    except OSError as error:
        raise ConfigError(key, f"cannot read {location}: {(error.strerror or str(error)).lower()}") from None
    if content.startswith(JKS_MAGIC):
        raise ConfigError(key, JKS_ADVICE.format(file=location, key=type_key))
    return content


def pem_text(content: bytes, location: str, key: str) -> str:
    """Return the text of a PEM file.

    Raises:
        ConfigError: It is not text.
    """
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(
            key, f"{location} is not a PEM file; for a PKCS12 file set the type of the store to PKCS12"
        ) from None


def blocks(text: str, label: str) -> list[str]:
    """Return the PEM blocks with a label or an ending of it, each with line feeds at the usual places.

    A value in a properties file may be a single line, with blanks or ``\\n`` in the place of line feeds.
    """
    found = []
    for match in BLOCK.finditer(text.replace("\\n", "\n")):
        if match["label"].endswith(label):
            body = match["body"]
            if ":" not in body:  # lines before the data describe how a key is encrypted
                data = "".join(body.split())
                body = "\n".join(data[at : at + LINE] for at in range(0, len(data), LINE)) + "\n"
            found.append(f"-----BEGIN {match['label']}-----\n{body}-----END {match['label']}-----\n")
    return found


def der(block: str) -> bytes:
    """Return the bytes of a PEM block.

    Raises:
        ValueError: It is not base64.
    """
    return b64decode("".join(block.splitlines()[1:-1]), validate=True)


def from_pkcs12(content: bytes, password: str | None, key: str) -> tuple[str, str]:
    """Return the private key, which may be empty, and the certificates of a PKCS12 file as PEM.

    Raises:
        ConfigError: The file or its password is wrong, or the package that reads it is missing.
    """
    try:
        from cryptography.hazmat.primitives.serialization import (
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise ConfigError(
            key, "PKCS12 files need cryptography: install the extra odradek[tls], or use PEM files"
        ) from None
    try:
        found = pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise ConfigError(key, f"cannot read the PKCS12 file: {error}") from None
    private = ""
    if found.key is not None:
        private = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    chain = ([found.cert] if found.cert else []) + found.additional_certs
    return private, "".join(each.certificate.public_bytes(Encoding.PEM).decode() for each in chain)


@contextmanager
def as_file(text: str) -> Iterator[str]:
    """Yield the path of a file with this text, because OpenSSL only loads keys from files.

    No other user can read it. On Linux it is in memory.
    """
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("odradek")
        try:
            os.write(descriptor, text.encode())
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    with tempfile.TemporaryDirectory() as directory:  # its mode is 0700
        path = Path(directory) / "key.pem"
        path.write_text(text, encoding="utf-8")
        yield str(path)
