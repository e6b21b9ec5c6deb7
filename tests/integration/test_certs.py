"""``odradek certs``: files for a host and a client."""

from __future__ import annotations

import builtins
import ssl
import stat
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from odradek.cli.errors import CommandFailed
from odradek.cli.main import cli
from odradek.security.certificate import read_certificate
from odradek.security.key_store import blocks, der
from odradek.security.private_ca import PrivateCa
from support.certificates import other_authority


def run(*arguments: str) -> str:
    result = CliRunner().invoke(cli, ["certs", *arguments])
    if result.exception is not None:
        raise result.exception
    return result.output


def own_certificate(path: Path) -> bytes:
    return der(blocks(path.read_text(), "CERTIFICATE")[0])


def test_the_files_are_for_a_host_and_a_client(tmp_path: Path) -> None:
    folder = tmp_path / "made"

    output = run("--directory", str(folder), "--host", "a.example", "--host", "10.0.0.1", "--user", "bob")

    names = ("ca.pem", "ca-key.pem", "server.pem", "client.pem")
    assert output.splitlines()[:4] == [str(folder / name) for name in names]
    assert f'ssl.keystore.location = "{folder / "server.pem"}"' in output
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    server, client = (read_certificate(own_certificate(folder / name)) for name in names[2:])
    assert (server.subject, server.alternative_names) == (
        "CN=a.example",
        frozenset({"DNS:a.example", "IP:10.0.0.1"}),
    )
    assert (client.subject, client.alternative_names) == ("CN=bob", frozenset())
    for name in names[2:]:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(folder / name)


@pytest.mark.parametrize("kind", ["ec", "rsa"])
def test_a_second_call_renews_the_certificates_of_the_same_authority(tmp_path: Path, kind: str) -> None:
    run("--directory", str(tmp_path), "--key", kind)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}

    run("--directory", str(tmp_path), "--key", kind)

    after = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert {name for name in before if before[name] != after[name]} == {"server.pem", "client.pem"}
    names = read_certificate(own_certificate(tmp_path / "server.pem")).alternative_names
    assert names == {"DNS:localhost", "IP:127.0.0.1", "IP:::1"}


def test_files_without_their_authority_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "server.pem").write_text("mine")

    with pytest.raises(CommandFailed, match=r"server.pem exists, but the authority needs ca.pem"):
        run("--directory", str(tmp_path))

    assert (tmp_path / "server.pem").read_text() == "mine"


def encrypted(folder: Path) -> None:
    """Encrypt the key of the authority."""
    key = load_pem_private_key((folder / "ca-key.pem").read_bytes(), None)
    (folder / "ca-key.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
    )


def of_another(folder: Path) -> None:
    """Replace the key of the authority."""
    (folder / "ca-key.pem").write_text(other_authority().issued.key)


def of_another_kind(folder: Path) -> None:
    """Replace the key of the authority by one that it cannot have."""
    key = ed25519.Ed25519PrivateKey.generate()
    (folder / "ca-key.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


def expired(folder: Path) -> None:
    """Replace the authority by one of eleven years ago."""
    old = PrivateCa.new("old CA", datetime.now(UTC) - timedelta(days=4_000))
    (folder / "ca.pem").write_text(old.issued.certificate)
    (folder / "ca-key.pem").write_text(old.issued.key)


def garbled(folder: Path) -> None:
    """Damage the certificate of the authority."""
    (folder / "ca.pem").write_text("nothing")


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (encrypted, "the key of the authority is encrypted"),
        (of_another, "the key of the authority does not belong to its certificate"),
        (of_another_kind, "the key of the authority is neither an EC nor an RSA key"),
        (expired, "the certificate of the authority has expired"),
        (garbled, "cannot make certificates in"),
    ],
)
def test_an_unusable_authority_is_refused_and_nothing_is_written(
    tmp_path: Path, damage: Callable[[Path], None], why: str
) -> None:
    run("--directory", str(tmp_path))
    damage(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    with pytest.raises(CommandFailed, match=why):
        run("--directory", str(tmp_path))

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")

    with pytest.raises(CommandFailed, match=r"cannot write certificates to .*: Not a directory"):
        run("--directory", str(tmp_path / "file" / "folder"))


def test_a_long_host_name_is_an_alternative_name_only(tmp_path: Path) -> None:
    long = f"{'a' * 50}.{'b' * 50}.example"

    run("--directory", str(tmp_path), "--host", long, "--host", "short")

    server = read_certificate(own_certificate(tmp_path / "server.pem"))
    assert (server.subject, server.alternative_names) == ("CN=short", frozenset({f"DNS:{long}", "DNS:short"}))


@pytest.mark.parametrize("option", [("--host", "b\u00fccher.example"), ("--host", ""), ("--user", "")])
def test_a_name_that_certificates_cannot_have_is_refused(tmp_path: Path, option: tuple[str, str]) -> None:
    with pytest.raises(CommandFailed, match="cannot make certificates in"):
        run("--directory", str(tmp_path), *option)

    assert list(tmp_path.iterdir()) == []


def test_without_the_package_the_command_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *more: object) -> object:
        if name == "odradek.security.private_ca":
            raise ImportError(name)
        return real(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)

    with pytest.raises(CommandFailed, match=r"install the extra odradek\[tls\]"):
        run("--directory", str(tmp_path))
