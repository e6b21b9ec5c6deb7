"""Subjects of certificates, as Java prints them, and the other parts that a listener needs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from ipaddress import ip_address

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID as Oid

from odradek.security.certificate import BadCertificate, read_certificate

STARTS = datetime(2026, 1, 1, tzinfo=UTC)
Parts = list[list[tuple[x509.ObjectIdentifier, str]]]


@cache
def key() -> Ed25519PrivateKey:
    return Ed25519PrivateKey.generate()


def certificate(parts: Parts, ends: datetime = STARTS + timedelta(1), *names: x509.GeneralName) -> bytes:
    subject = x509.Name(
        [x509.RelativeDistinguishedName([x509.NameAttribute(*pair) for pair in part]) for part in parts]
    )
    builder = x509.CertificateBuilder().subject_name(subject).issuer_name(x509.Name([]))
    builder = builder.public_key(key().public_key()).serial_number(1)
    builder = builder.not_valid_before(STARTS).not_valid_after(ends)
    if names:
        builder = builder.add_extension(x509.BasicConstraints(False, None), True)
        builder = builder.add_extension(x509.SubjectAlternativeName(names), False)
    from cryptography.hazmat.primitives.serialization import Encoding

    return builder.sign(key(), None).public_bytes(Encoding.DER)


def cn(text: str) -> Parts:
    return [[(Oid.COMMON_NAME, text)]]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (
            [
                [(Oid.COUNTRY_NAME, "NO")],
                [(Oid.STATE_OR_PROVINCE_NAME, "Oslo")],
                [(Oid.LOCALITY_NAME, "Oslo")],
                [(Oid.ORGANIZATION_NAME, "Acme, Inc.")],
                [(Oid.ORGANIZATIONAL_UNIT_NAME, "R&D")],
                [(Oid.COMMON_NAME, "bob smith")],
            ],
            r"CN=bob smith,OU=R&D,O=Acme\, Inc.,L=Oslo,ST=Oslo,C=NO",
        ),
        (
            [
                [(Oid.DOMAIN_COMPONENT, "com")],
                [(Oid.DOMAIN_COMPONENT, "acme")],
                [(Oid.USER_ID, "u1")],
                [(Oid.COMMON_NAME, "bob")],
            ],
            "CN=bob,UID=u1,DC=acme,DC=com",
        ),
        (
            [[(Oid.EMAIL_ADDRESS, "bob@acme.com")], [(Oid.COMMON_NAME, "bob")]],
            "CN=bob,1.2.840.113549.1.9.1=#160c626f624061636d652e636f6d",
        ),
        (
            [
                [(Oid.SERIAL_NUMBER, "42")],
                [(Oid.TITLE, "dr")],
                [(Oid.GIVEN_NAME, "B")],
                [(Oid.SURNAME, "S")],
            ],
            "2.5.4.4=#0c0153,2.5.4.42=#0c0142,2.5.4.12=#0c026472,2.5.4.5=#13023432",
        ),
        ([[(Oid.STREET_ADDRESS, "st 1")], [(Oid.LOCALITY_NAME, "x")]], "L=x,STREET=st 1"),
        (cn('#hash+plus"q"<a>;b\\c=d'), r"CN=\#hash\+plus\"q\"\<a\>\;b\\c\=d"),
        (cn("a#b"), r"CN=a\#b"),
        (cn(" lead and trail "), r"CN=\ lead and trail\ "),
        (cn("  two  sp  "), r"CN=\ \ two  sp\ \ "),
        (cn(" "), "CN=\\ "),
        (cn("\rlead"), "CN=\\\rlead"),
        (cn("nul\0x"), r"CN=nul\00x"),
        (cn("bø二"), "CN=bø二"),
        (
            [[(Oid.COMMON_NAME, "bob"), (Oid.USER_ID, "u1")], [(Oid.ORGANIZATION_NAME, "Acme")]],
            "O=Acme,CN=bob+UID=u1",
        ),
        ([], ""),
    ],
)
def test_a_subject_is_printed_as_java_prints_it(parts: Parts, text: str) -> None:
    assert read_certificate(certificate(parts)).subject == text


@pytest.mark.parametrize(
    "ends", [datetime(2049, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2051, 2, 3, tzinfo=UTC)]
)
def test_the_end_of_validity_is_read_from_both_forms_of_a_time(ends: datetime) -> None:
    assert read_certificate(certificate(cn("x"), ends)).not_after_ms == ends.timestamp() * 1000


def test_the_names_are_read_in_one_spelling() -> None:
    names = x509.DNSName("Host.Example"), x509.IPAddress(ip_address("::1")), x509.RFC822Name("a@b")

    found = read_certificate(certificate(cn("x"), STARTS + timedelta(1), *names))

    assert found.alternative_names == {"DNS:host.example", "IP:::1", "8103614062"}


def test_subjects_that_differ_in_case_and_blanks_are_equal() -> None:
    one, other = (read_certificate(certificate(cn(text))) for text in ("Bob  Smith", "bob smith"))

    assert one.subject != other.subject
    assert one.canonical_subject == other.canonical_subject


def test_other_bytes_are_no_certificate() -> None:
    whole = certificate(cn("bob"), STARTS + timedelta(1), x509.DNSName("a"))
    damaged = [whole[:end] for end in range(len(whole))] + [b"\x1f\x01x", b"\x30\x80x", b"\x30\x00"]

    for data in damaged:
        with pytest.raises(BadCertificate):
            read_certificate(data)
