"""``odradek certs``: certificates for a laptop or a test, from a private authority."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from odradek.cli.errors import CommandFailed

if TYPE_CHECKING:
    from odradek.security.private_ca import PrivateCa

CA_CERTIFICATE, CA_KEY = "ca.pem", "ca-key.pem"
SERVER, CLIENT = "server.pem", "client.pem"
LONGEST_COMMON_NAME = 64
DEFAULT_NAME = "odradek"
"""The common name of a host whose names are all longer; clients compare the other names."""
MISSING = "odradek certs needs cryptography: install the extra odradek[tls]"


@click.command("certs")
@click.option(
    "--directory",
    required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the files. An authority in it is used again.",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name or address that clients connect to; repeatable. Default: localhost, 127.0.0.1 and ::1.",
)
@click.option("--user", default="client", show_default=True, help="Common name of the client certificate.")
@click.option(
    "--days", type=click.IntRange(1, 3_650), default=365, show_default=True, help="How long they are valid."
)
@click.option(
    "--key",
    "kind",
    type=click.Choice(["ec", "rsa"]),
    default="ec",
    show_default=True,
    help="Kind of the keys: P-256, or RSA with 2048 bits.",
)
def certs(directory: Path, hosts: Sequence[str], user: str, days: int, kind: str) -> None:
    """Make a private authority, a server certificate and a client certificate.

    Call it again with the same directory to renew the two certificates. The key of the authority is in the
    directory too, so this is for laptops and tests.
    """
    for path in write(directory, hosts, user, days, kind):
        click.echo(path)
    click.echo(f"""
# a host, in odradek.toml
listeners = "SSL://{hosts[0] if hosts else "localhost"}:9093"
ssl.keystore.location = "{directory / SERVER}"
ssl.truststore.location = "{directory / CA_CERTIFICATE}"
ssl.client.auth = "required"

# a client of it, in client.properties
security.protocol=SSL
ssl.truststore.type=PEM
ssl.truststore.location={directory / CA_CERTIFICATE}
ssl.keystore.type=PEM
ssl.keystore.location={directory / CLIENT}""")


def write(
    directory: Path, hosts: Sequence[str] = (), user: str = "client", days: int = 365, kind: str = "ec"
) -> list[Path]:
    """Write the files; return their paths.

    Raises:
        CommandFailed: The package cryptography is missing, or a file cannot be read or written.
    """
    try:
        from odradek.security.private_ca import LOOPBACK
    except ImportError:
        raise CommandFailed(MISSING) from None
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = the_authority(directory, kind)
        names = hosts or LOOPBACK
        short = [name for name in names if len(name) <= LONGEST_COMMON_NAME]
        server = authority.issue((short or [DEFAULT_NAME])[0], names, days=days, kind=kind)
        client = authority.issue(user, days=days, kind=kind)
        contents = {
            CA_CERTIFICATE: authority.issued.certificate,
            CA_KEY: authority.issued.key,
            SERVER: server.both,
            CLIENT: client.both,
        }
        return [write_private(directory / name, text) for name, text in contents.items()]
    except OSError as error:
        raise CommandFailed(f"cannot write certificates to {directory}: {error.strerror}") from error
    except ValueError as error:
        raise CommandFailed(f"cannot make certificates in {directory}: {error}") from error


def the_authority(directory: Path, kind: str) -> PrivateCa:
    """Return the authority of a directory, or a new one.

    Raises:
        CommandFailed: There are certificates without an authority.
        OSError, ValueError: Its files cannot be read.
    """
    from odradek.security.private_ca import Issued, PrivateCa

    now = datetime.now(UTC)
    certificate, key = directory / CA_CERTIFICATE, directory / CA_KEY
    if certificate.exists() and key.exists():
        return PrivateCa(Issued(key.read_text("utf-8"), certificate.read_text("utf-8")), now)
    for name in (CA_CERTIFICATE, CA_KEY, SERVER, CLIENT):
        if (directory / name).exists():
            raise CommandFailed(
                f"{directory / name} exists, but the authority needs {CA_CERTIFICATE} and {CA_KEY}: "
                "choose another --directory"
            )
    return PrivateCa.new("Odradek private CA", now, kind)


def write_private(path: Path, text: str) -> Path:
    """Write or replace a file that only its owner can read; return its path."""
    other = path.with_name(f".{path.name}.new")
    other.unlink(missing_ok=True)
    descriptor = os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    other.replace(path)
    return path
