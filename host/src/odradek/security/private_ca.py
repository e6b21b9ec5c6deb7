"""A private certificate authority, for laptops and tests. It needs the package cryptography."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

EC, RSA = "ec", "rsa"
Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
AUTHORITY_DAYS: Final = 3_650
EARLIER: Final = timedelta(hours=1)
"""Certificates are valid from this long ago, for computers whose clocks are late."""
LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Issued:
    """A private key with its certificate, as PEM."""

    key: str
    certificate: str

    @property
    def both(self) -> str:
        """The content of a key store."""
        return self.key + self.certificate


def new_key(kind: str) -> Key:
    """Return a private key: P-256, or RSA with 2048 bits."""
    if kind == RSA:
        return rsa.generate_private_key(public_exponent=65_537, key_size=2048)
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: Key, password: str | None = None) -> str:
    """Return a private key as PKCS#8, encrypted if there is a password."""
    encryption: KeySerializationEncryption = NoEncryption()
    if password:
        encryption = BestAvailableEncryption(password.encode())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()


def common_name(text: str) -> x509.Name:
    """Return a subject with one attribute."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def general_name(host: str) -> x509.GeneralName:
    """Return a host as clients compare it: an address, or a DNS name."""
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


class PrivateCa:
    """An authority.

    Args:
        issued: Its key and certificate.
        now: The current time.

    Raises:
        ValueError: They are not PEM, do not belong together, or have expired.
    """

    def __init__(self, issued: Issued, now: datetime) -> None:
        self.issued = issued
        self.now = now
        try:
            key = load_pem_private_key(issued.key.encode(), None)
        except TypeError:
            raise ValueError("the key of the authority is encrypted") from None
        if not isinstance(key, Key):
            raise ValueError("the key of the authority is neither an EC nor an RSA key")
        self.key = key
        self.certificate = x509.load_pem_x509_certificate(issued.certificate.encode())
        if self.certificate.public_key() != key.public_key():
            raise ValueError("the key of the authority does not belong to its certificate")
        if self.certificate.not_valid_after_utc <= now:
            raise ValueError("the certificate of the authority has expired; choose another directory")

    @classmethod
    def new(cls, name: str, now: datetime, kind: str = EC) -> PrivateCa:
        """Make an authority with a new key."""
        key = new_key(kind)
        subject = common_name(name)
        builder = built(subject, subject, key, now, AUTHORITY_DAYS)
        usage = key_usage(key_cert_sign=True, crl_sign=True, digital_signature=True)
        certificate = (
            builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(key, SHA256())
        )
        return cls(Issued(key_pem(key), certificate.public_bytes(Encoding.PEM).decode()), now)

    def issue(
        self,
        name: str | x509.Name,
        hosts: Sequence[str] = (),
        *,
        days: int = 365,
        kind: str = EC,
        password: str | None = None,
    ) -> Issued:
        """Make a key and a certificate.

        Args:
            name: The common name, or a whole subject.
            hosts: Names and addresses of a server; none for a client.
            days: How long it is valid.
            kind: ``ec`` or ``rsa``.
            password: Encrypts the key.
        """
        key = new_key(kind)
        subject = common_name(name) if isinstance(name, str) else name
        purpose = ExtendedKeyUsageOID.SERVER_AUTH if hosts else ExtendedKeyUsageOID.CLIENT_AUTH
        builder = (
            built(subject, self.certificate.subject, key, self.now, days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(key_usage(digital_signature=True, key_encipherment=kind == RSA), critical=True)
            .add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([general_name(host) for host in hosts])
            builder = builder.add_extension(names, critical=False)
        certificate = builder.sign(self.key, SHA256()).public_bytes(Encoding.PEM).decode()
        return Issued(key_pem(key, password), certificate)


def built(
    subject: x509.Name, issuer: x509.Name, key: Key, now: datetime, days: int
) -> x509.CertificateBuilder:
    """Begin a certificate."""
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - EARLIER)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def key_usage(
    *,
    digital_signature: bool = False,
    key_encipherment: bool = False,
    key_cert_sign: bool = False,
    crl_sign: bool = False,
) -> x509.KeyUsage:
    """Return the extension with these uses and no others."""
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_encipherment=key_encipherment,
        key_cert_sign=key_cert_sign,
        crl_sign=crl_sign,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
