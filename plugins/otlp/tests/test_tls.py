"""A private CA and client certificates, including expired and renewed ones."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from odradek.plugin import ConfigError, PluginConfig, Retry
from odradek_otlp.otlp_forwarder import OtlpForwarder
from odradek_otlp.otlp_table import read_settings

if TYPE_CHECKING:
    from plugins.otlp.tests.conftest import Endpoint, Kit, ServerTls

DAY = dt.timedelta(days=1)
PROTOCOLS = ["http/protobuf", "grpc"]


@dataclass
class Authority:
    """A self-made CA that writes its certificates into a folder."""

    folder: Path
    name: str
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @classmethod
    def make(cls, folder: Path, name: str) -> Authority:
        key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        certificate = (
            begun(name, name, key).add_extension(constraints, critical=True).sign(key, hashes.SHA256())
        )
        authority = cls(folder, name, key, certificate)
        authority.ca.write_bytes(pem(certificate))
        return authority

    @property
    def ca(self) -> Path:
        return self.folder / f"{self.name}.ca.pem"

    def issue(self, name: str, days: int = 1) -> tuple[Path, Path]:
        """Certificate and key for 127.0.0.1, valid until ``days`` from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        certificate = (
            begun(name, self.name, key, days)
            .add_extension(names, critical=False)
            .sign(self.key, hashes.SHA256())
        )
        certificate_file, key_file = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        certificate_file.write_bytes(pem(certificate))
        key_file.write_bytes(key_pem(key, serialization.NoEncryption()))
        return certificate_file, key_file


def begun(name: str, issuer: str, key: ec.EllipticCurvePrivateKey, days: int = 1) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 10 * DAY)
        .not_valid_after(now + days * DAY)
    )


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def key_pem(key: ec.EllipticCurvePrivateKey, encryption: serialization.KeySerializationEncryption) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path, "ours")


@pytest.fixture
def stranger(tmp_path: Path) -> Authority:
    return Authority.make(tmp_path, "theirs")


def endpoint_of(kit: Kit, protocol: str) -> Endpoint:
    return kit.grpc if protocol == "grpc" else kit.http


def server(kit: Kit, authority: Authority, days: int = 1, client_ca: Path | None = None) -> ServerTls:
    certificate, key = authority.issue("server", days)
    return kit.tls(certificate=certificate, key=key, client_ca=client_ca)


def forwarder_of(port: int, protocol: str, **files: Path) -> OtlpForwarder:
    table: dict[str, object] = {
        "endpoint": f"https://127.0.0.1:{port}",
        "protocol": protocol,
        "timeout.ms": 5_000,
    } | {f"{name.replace('_', '.')}.file": str(file) for name, file in files.items()}
    settings = read_settings(PluginConfig("plugins.otlp", table), {})
    assert settings is not None
    return OtlpForwarder(settings, user_agent="odradek-otlp/test")


async def delivered(forwarder: OtlpForwarder, kit: Kit) -> str:
    """Empty after a delivery, otherwise the reason of the failure."""
    try:
        await forwarder.deliver([kit.record("orders", "a")])
    except Retry as error:
        return str(error)
    return ""


async def eventually(forwarder: OtlpForwarder, kit: Kit) -> None:
    """Retry as the host does; gRPC itself waits a moment before it connects again."""
    for _ in range(100):
        if not await delivered(forwarder, kit):
            return
        await asyncio.sleep(0.05)
    pytest.fail("not delivered")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_private_ca_is_trusted_if_configured(kit: Kit, authority: Authority, protocol: str) -> None:
    async def run() -> tuple[str, str]:
        async with endpoint_of(kit, protocol)(tls=server(kit, authority)) as sink:
            trusting = forwarder_of(sink.port, protocol, certificate=authority.ca)
            doubting = forwarder_of(sink.port, protocol)
            await trusting.start()
            await doubting.start()
            found = await delivered(trusting, kit), await delivered(doubting, kit)
            await trusting.close()
            await doubting.close()
        return found

    trusted, doubted = asyncio.run(run())

    assert trusted == ""
    assert "CERTIFICATE_VERIFY_FAILED" in doubted


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_client_certificate_is_sent(kit: Kit, authority: Authority, protocol: str) -> None:
    certificate, key = authority.issue("client")

    async def run() -> tuple[str, str]:
        tls = server(kit, authority, client_ca=authority.ca)
        async with endpoint_of(kit, protocol)(tls=tls) as sink:
            known = forwarder_of(
                sink.port, protocol, certificate=authority.ca, client_certificate=certificate, client_key=key
            )
            unknown = forwarder_of(sink.port, protocol, certificate=authority.ca)
            await known.start()
            await unknown.start()
            found = await delivered(known, kit), await delivered(unknown, kit)
            await known.close()
            await unknown.close()
        return found

    with_certificate, without = asyncio.run(run())

    assert with_certificate == ""
    assert without != ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_expired_certificate_is_a_retry_until_it_is_renewed(
    kit: Kit, authority: Authority, protocol: str
) -> None:
    async def run() -> str:
        endpoint = endpoint_of(kit, protocol)
        async with endpoint(tls=server(kit, authority, days=-1)) as sink:
            port = sink.port
            forwarder = forwarder_of(port, protocol, certificate=authority.ca)
            await forwarder.start()
            problem = await delivered(forwarder, kit)
        async with endpoint(tls=server(kit, authority), port=port):
            await eventually(forwarder, kit)
            await forwarder.close()
        return problem

    problem = asyncio.run(run())

    assert "certificate has expired" in problem


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_changed_certificates_are_read_again(
    kit: Kit, authority: Authority, stranger: Authority, protocol: str, caplog: pytest.LogCaptureFixture
) -> None:
    ca = authority.folder / "ca.pem"
    ca.write_bytes(stranger.ca.read_bytes())
    certificate, key = stranger.issue("client")

    async def run() -> list[str]:
        tls = server(kit, authority, client_ca=authority.ca)
        async with endpoint_of(kit, protocol)(tls=tls) as sink:
            forwarder = forwarder_of(
                sink.port, protocol, certificate=ca, client_certificate=certificate, client_key=key
            )
            await forwarder.start()
            problems = [await delivered(forwarder, kit)]
            ca.write_bytes(b"half of a certi")
            problems.append(await delivered(forwarder, kit))
            ca.write_bytes(authority.ca.read_bytes())
            problems.append(await delivered(forwarder, kit))
            authority.issue("client")
            await eventually(forwarder, kit)
            await forwarder.close()
        return problems

    problems = asyncio.run(run())

    assert all(problems)
    assert [record.message for record in caplog.records if record.name.startswith("odradek")] == [
        "certificate not renewed, using the last good one"
    ]


def broken(authority: Authority, stranger: Authority) -> dict[str, tuple[dict[str, Path], str]]:
    """Configuration tables with files, and the key of the error."""
    certificate, key = authority.issue("client")
    _, other_key = stranger.issue("other")
    locked = authority.folder / "locked.key"
    locked.write_bytes(key_pem(authority.key, serialization.BestAvailableEncryption(b"password")))
    text = authority.folder / "text"
    text.write_text("no certificate")
    return {
        "no certificates in it": ({"certificate": text}, "certificate.file"),
        "without a key": ({"client_certificate": certificate}, "client.key.file"),
        "a key alone": ({"client_key": key}, "client.certificate.file"),
        "the key of another": (
            {"client_certificate": certificate, "client_key": other_key},
            "client.certificate.file",
        ),
        "a key with a password": (
            {"client_certificate": certificate, "client_key": locked},
            "client.certificate.file",
        ),
    }


def test_invalid_certificates_stop_the_start(authority: Authority, stranger: Authority) -> None:
    for files, blamed in broken(authority, stranger).values():
        with pytest.raises(ConfigError) as caught:
            forwarder_of(1, "http/protobuf", **files)

        assert caught.value.path == f"plugins.otlp.{blamed}"


def test_certificates_for_an_endpoint_without_tls_are_refused(authority: Authority) -> None:
    table = {"endpoint": "http://127.0.0.1:1", "certificate.file": str(authority.ca)}

    with pytest.raises(ConfigError, match="without TLS"):
        read_settings(PluginConfig("plugins.otlp", table), {})


def test_the_variables_of_opentelemetry_name_the_files(authority: Authority) -> None:
    certificate, key = authority.issue("client")
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": str(authority.ca),
        "OTEL_EXPORTER_OTLP_METRICS_CLIENT_CERTIFICATE": str(certificate),
        "OTEL_EXPORTER_OTLP_CLIENT_KEY": str(key),
    }

    settings = read_settings(PluginConfig("plugins.otlp", {}), variables)

    assert settings is not None
    assert settings.tls.paths() == (authority.ca, certificate, key)


def test_a_variable_with_a_missing_file_is_named() -> None:
    variables = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://127.0.0.1:1",
        "OTEL_EXPORTER_OTLP_CERTIFICATE": "/no/such/file",
    }

    with pytest.raises(ConfigError) as caught:
        read_settings(PluginConfig("plugins.otlp", {}), variables)

    assert caught.value.path == "OTEL_EXPORTER_OTLP_CERTIFICATE"
