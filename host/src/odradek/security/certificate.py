"""The parts of an X.509 certificate that TLS listeners need: the subject, the names and the end of validity.

The subject is written as Java's ``X500Principal.getName()`` writes it (RFC 2253), because ACLs and mapping
rules contain that text. Java decodes every string type as UTF-8 and prints other values, and the values of
unknown attributes, as the hexadecimal form of their DER encoding.

OpenSSL has checked a certificate before it is read here. The standard library's ``getpeercert()`` does not
return attribute types and encodings, and libraries print other text than Java.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, NamedTuple

KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
"""The attributes of RFC 2253 by object identifier."""
STRINGS: Final = {0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1E}
"""UTF8String, PrintableString, T61String, IA5String, GeneralString, BMPString: AVA.java prints their text."""
ESCAPED: Final = ',=+<>#;"\\'
BLANKS: Final = " \r"
SEQUENCE: Final = 0x30
VERSION: Final = 0xA0
EXTENSIONS: Final = 0xA3
UTC_TIME: Final = 0x17
DNS_NAME: Final = 0x82
IP_ADDRESS: Final = 0x87
SUBJECT_ALT_NAME: Final = bytes.fromhex("551d11")


class BadCertificate(ValueError):
    """The bytes are not a certificate."""


class Element(NamedTuple):
    """One value of DER."""

    tag: int
    content: bytes
    encoded: bytes
    """Tag, length and content."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """One certificate."""

    subject: str
    """The distinguished name; empty if there is none."""
    not_after_ms: int
    """The end of its validity, epoch milliseconds."""
    alternative_names: frozenset[str]
    """The names it is valid for: ``DNS:host``, ``IP:address``; others in hexadecimal."""

    @property
    def canonical_subject(self) -> str:
        """The subject for comparisons: case and repeated blanks do not count."""
        return " ".join(self.subject.lower().split())


def read_certificate(der: bytes) -> Certificate:
    """Read a certificate.

    Raises:
        BadCertificate: The bytes are not a certificate.
    """
    try:
        body = elements(only(only(elements(der)).content, SEQUENCE).content)
        # version is optional; then serial number, signature, issuer, validity, subject
        fields = body[1:] if body[0].tag == VERSION else body
        validity, subject = fields[3], fields[4]
        extensions = next((each for each in fields[5:] if each.tag == EXTENSIONS), None)
        return Certificate(
            subject=name_text(subject),
            not_after_ms=time_ms(elements(validity.content)[1]),
            alternative_names=frozenset(alternative_names(extensions)),
        )
    except (IndexError, ValueError) as error:
        raise BadCertificate(f"not an X.509 certificate: {error}") from None


def only(found: Sequence[Element] | bytes, tag: int = 0) -> Element:
    """Return the first element."""
    first = (elements(found) if isinstance(found, bytes) else found)[0]
    if tag and first.tag != tag:
        raise BadCertificate(f"expected tag {tag:#x}, found {first.tag:#x}")
    return first


def elements(data: bytes) -> list[Element]:
    """Return the values of a DER sequence or set.

    Raises:
        BadCertificate: A value is longer than the data, or has a form that certificates do not have.
    """
    found: list[Element] = []
    start = 0
    while start < len(data):
        if data[start] & 0x1F == 0x1F:
            raise BadCertificate("a tag of several bytes")
        length, content = data[start + 1], start + 2
        if length & 0x80:
            size = length & 0x7F
            if not 1 <= size <= 4:
                raise BadCertificate("a length without a bound")
            length, content = int.from_bytes(data[content : content + size]), content + size
        end = content + length
        if end > len(data):
            raise BadCertificate(f"{end} bytes expected, {len(data)} found")
        found.append(Element(data[start], data[content:end], data[start:end]))
        start = end
    return found


def name_text(name: Element) -> str:
    """Return a distinguished name as Java prints it: the last part first."""
    parts = [
        "+".join(attribute_text(each) for each in elements(part.content)) for part in elements(name.content)
    ]
    return ",".join(reversed(parts))


def attribute_text(attribute: Element) -> str:
    """Return one attribute of a name."""
    identifier, value = elements(attribute.content)[:2]
    dotted = object_identifier(identifier.content)
    keyword = KEYWORDS.get(dotted)
    if keyword is None or value.tag not in STRINGS:
        return f"{keyword or dotted}=#{value.encoded.hex()}"
    return f"{keyword}={escaped(value.content.decode('utf-8', 'replace'))}"


def object_identifier(content: bytes) -> str:
    """Return an object identifier with dots."""
    numbers: list[int] = []
    number = 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            numbers.append(number)
            number = 0
    first = min(numbers[0] // 40, 2)
    return ".".join(map(str, (first, numbers[0] - 40 * first, *numbers[1:])))


def escaped(text: str) -> str:
    """Return the value of an attribute with the escapes of AVA.java."""
    first = len(text) - len(text.lstrip(BLANKS))
    last = len(text.rstrip(BLANKS)) - 1
    pieces = []
    for at, letter in enumerate(text):
        outside = not first <= at <= last
        pieces.append(f"\\{letter}" if letter in ESCAPED or outside else letter)
    return "".join(pieces).replace("\0", "\\00")


def time_ms(time: Element) -> int:
    """Return a time of a certificate, epoch milliseconds."""
    text = time.content.decode("ascii")
    if time.tag == UTC_TIME:
        text = ("19" if text[:2] >= "50" else "20") + text
    return int(datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp() * 1000)


def alternative_names(extensions: Element | None) -> list[str]:
    """Return the names in the extension subjectAltName."""
    if extensions is None:
        return []
    for extension in elements(only(extensions.content).content):
        parts = elements(extension.content)
        if parts[0].content == SUBJECT_ALT_NAME:
            return [alternative_name(each) for each in elements(only(parts[-1].content).content)]
    return []


def alternative_name(name: Element) -> str:
    """Return one name as text."""
    if name.tag == DNS_NAME:
        return f"DNS:{name.content.decode('ascii').lower()}"
    if name.tag == IP_ADDRESS:
        return f"IP:{ip_address(name.content)}"
    return name.encoded.hex()
