"""Certificates for tests, from one private authority per process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from odradek.security.private_ca import LOOPBACK, Issued, PrivateCa

NOW = datetime.now(UTC)


@cache
def authority() -> PrivateCa:
    """The authority that hosts and clients of the tests trust."""
    return PrivateCa.new("test CA", NOW)


@cache
def other_authority() -> PrivateCa:
    """An authority that nobody trusts."""
    return PrivateCa.new("other CA", NOW)


@cache
def server() -> Issued:
    """The key store of a host on this machine."""
    return authority().issue("localhost", LOOPBACK)


@cache
def client() -> Issued:
    """The key store of the client ``alice``."""
    return authority().issue("alice")


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a host and its clients."""

    folder: Path

    def write(self, name: str, text: str) -> str:
        """Write a file; return its path."""
        path, written = self.folder / name, self.folder / f"{name}.written"
        written.write_text(text, encoding="utf-8")
        written.chmod(0o600)
        written.replace(path)  # in one step: a host may be reading it
        return str(path)

    @property
    def ca(self) -> str:
        return self.write("ca.pem", authority().issued.certificate)

    @property
    def other_ca(self) -> str:
        return self.write("other-ca.pem", other_authority().issued.certificate)

    @property
    def server(self) -> str:
        return self.write("server.pem", server().both)

    @property
    def elsewhere(self) -> str:
        """The key store of a host with another name."""
        return self.write("elsewhere.pem", authority().issue("other", ["other.example"]).both)

    @property
    def client(self) -> str:
        return self.write("client.pem", client().both)

    @property
    def stranger(self) -> str:
        """The key store of a client of another authority."""
        return self.write("stranger.pem", other_authority().issue("alice").both)

    @property
    def expired(self) -> str:
        """The key store of a host whose certificate has expired."""
        return self.write("expired.pem", authority().issue("localhost", LOOPBACK, days=0).both)

    @property
    def expired_client(self) -> str:
        """The key store of a client whose certificate has expired."""
        return self.write("expired-client.pem", authority().issue("alice", days=0).both)

    @property
    def settings(self) -> list[str]:
        """The settings of a host with these files."""
        return [f"ssl.keystore.location={self.server}", f"ssl.truststore.location={self.ca}"]
