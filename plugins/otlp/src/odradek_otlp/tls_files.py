"""A private CA and a client certificate, out of files that may be renewed while the plugin runs."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


class BadCertificate(ValueError):
    """The files make no TLS configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """All PEM. Without a CA those of the machine are trusted; a certificate comes with its key."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def paths(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)

    def context(self) -> ssl.SSLContext:
        """For a client; names and dates of the server's certificate are checked.

        Raises:
            BadCertificate: A file cannot be read, is no PEM, wants a password, or does not fit the others.
        """
        try:
            context = ssl.create_default_context(cafile=self.ca)
            if self.certificate is not None:
                # Without a password OpenSSL would ask on the terminal.
                context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            raise BadCertificate(f"{', '.join(map(str, self.paths()))}: {error}") from error
        return context

    def contents(self) -> Mapping[str, bytes | None]:
        """The bytes of the files, under the names of ``grpc.ssl_channel_credentials``.

        Raises:
            BadCertificate: As `context`.
        """
        self.context()
        try:
            return {
                "root_certificates": self.ca.read_bytes() if self.ca else None,
                "private_key": self.key.read_bytes() if self.key else None,
                "certificate_chain": self.certificate.read_bytes() if self.certificate else None,
            }
        except OSError as error:
            raise BadCertificate(str(error)) from error
