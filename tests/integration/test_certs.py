"""``odradek certs``: files for a host and a client."""

from __future__ import annotations

import builtins
import ssl
import stat
from pathlib import Path

import pytest
from click.testing import CliRunner

from odradek.cli.errors import CommandFailed
from odradek.cli.main import cli
from odradek.security.certificate import read_certificate
from odradek.security.key_store import blocks, der


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
