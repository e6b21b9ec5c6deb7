"""A private CA and a client certificate, from files that may be renewed at run time."""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from odradek.bounds.small_file import read_small_file
from odradek.endpoints.tls_context import default_context
from odradek.plugin.config import PluginConfig


class BadCertificate(ValueError):
    """The files are not a valid TLS configuration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """PEM files. Without a CA the machine's CAs are trusted; a certificate needs its key."""

    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None

    def paths(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.ca, self.certificate, self.key) if path is not None)

    def context(self) -> ssl.SSLContext:
        """The context of a client, which checks the name and the dates of the server's certificate.

        Raises:
            BadCertificate: A file is unreadable, not PEM or encrypted, or does not match the others.
        """
        try:
            for path in self.paths():
                read_small_file(path)  # OpenSSL would wait for a pipe
            context = default_context(cafile=self.ca)
            if self.certificate is not None:
                # Without a password argument OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            raise BadCertificate(f"{', '.join(map(str, self.paths()))}: {error}") from error
        return context

    def contents(self) -> Mapping[str, bytes | None]:
        """The contents of the files, by the arguments of ``grpc.ssl_channel_credentials``.

        Raises:
            BadCertificate: As `context`.
        """
        self.context()
        try:
            return {
                "root_certificates": read_small_file(self.ca) if self.ca else None,
                "private_key": read_small_file(self.key) if self.key else None,
                "certificate_chain": read_small_file(self.certificate) if self.certificate else None,
            }
        except OSError as error:
            raise BadCertificate(str(error)) from error


def read_tls_files(keys: Sequence[tuple[PluginConfig, str]]) -> TlsFiles:
    """Files of an endpoint, loaded once to check them.

    Args:
        keys: The table and the key of the CA, the certificate and its key.

    Raises:
        ConfigError: A file is unusable, or a client certificate lacks its key or the reverse.
    """
    ca, certificate, key = [config.file(name) for config, name in keys]
    if (certificate is None) != (key is None):
        config, name = keys[1] if certificate is None else keys[2]
        raise config.error(name, "expected both a client certificate and its key, found only one of them")
    tls = TlsFiles(ca=ca, certificate=certificate, key=key)
    if tls.paths():
        try:
            tls.context()
        except BadCertificate as error:
            config, name = next(each for each, path in zip(keys, (ca, certificate, key), strict=True) if path)
            raise config.error(name, str(error)) from error
    return tls
