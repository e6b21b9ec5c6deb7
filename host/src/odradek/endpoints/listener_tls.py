"""TLS of the listeners, from files that may be renewed at run time."""

from __future__ import annotations

import logging
import ssl
from dataclasses import dataclass
from pathlib import Path

from odradek.bounds.small_file import read_small_file
from odradek.endpoints.tls_context import default_context
from odradek.endpoints.watched_files import WatchedFiles

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTls:
    """PEM files of a server."""

    certificate: Path
    key: Path | None = None
    """None: the file of the certificate has the key."""
    client_ca: Path | None = None
    """With it senders need a certificate of this CA."""

    def paths(self) -> tuple[Path, ...]:
        return tuple(path for path in (self.certificate, self.key, self.client_ca) if path is not None)

    def context(self) -> ssl.SSLContext:
        """The context of a listener.

        Raises:
            OSError, ValueError: A file is unreadable, not PEM or encrypted, or the key does not match.
        """
        for path in self.paths():
            read_small_file(path)  # OpenSSL would wait for a pipe
        context = default_context(ssl.Purpose.CLIENT_AUTH)
        # Without a password argument OpenSSL would ask for one on the terminal.
        context.load_cert_chain(self.certificate, self.key, password="")
        if self.client_ca is not None:
            context.load_verify_locations(self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class RenewedTls:
    """The TLS of a listener of asyncio. A handshake uses the current files, or the last good ones."""

    def __init__(self, files: ListenerTls) -> None:
        self.files = files
        self.watched = WatchedFiles(files.paths())
        self.watched.changed()
        self.now = files.context()

    def context(self) -> ssl.SSLContext:
        """The context of the listener, which asks for the current one in each handshake."""
        context = self.files.context()
        context.sni_callback = self.renew
        return context

    def renew(self, connection: ssl.SSLObject | ssl.SSLSocket, _name: str | None, _context: object) -> None:
        if self.watched.changed():
            try:
                self.now = self.files.context()
            except (OSError, ValueError) as error:
                not_renewed(error)
        connection.context = self.now


def not_renewed(error: Exception) -> None:
    problem = "certificate of a listener not renewed, using the last good one"
    log.warning(problem, extra={"problem": str(error)})
