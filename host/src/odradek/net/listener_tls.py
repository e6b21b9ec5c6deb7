"""TLS of one listener: the context of new connections, and the principals of clients with certificates."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from odradek.bounds.small_file import expanded
from odradek.plugin.config import ConfigError
from odradek.security.principal_mapping import NoMatchingRule
from odradek.security.principals import UnknownPrincipal
from odradek.security.tls_settings import KEYSTORE_LOCATION, NONE, TlsSettings
from odradek.settings.references import warn_if_others_read

if TYPE_CHECKING:
    from odradek.net.tls_context import LoadedTls
    from odradek.security.certificate import Certificate

log = logging.getLogger(__name__)

DAY_MS = 86_400_000
Stamp = tuple[int, int, int] | None
"""Change time, size and number of a file; None if there is none."""


class ListenerTls:
    """TLS of one listener. New connections use the newest context, open ones keep theirs.

    Args:
        listener: The name of the listener.
        settings: Its settings.

    Raises:
        ConfigError: A file cannot be read, or OpenSSL refuses its content.
    """

    def __init__(self, listener: str, settings: TlsSettings) -> None:
        self.listener = listener
        self.prepare: Callable[[LoadedTls], None] = lambda _loaded: None
        self.stamps = stamps(settings)
        self.loaded = self.load(settings)
        self.reloads = 0
        self.failed_reloads = 0
        self.is_stale = False
        """The newest files or settings could not be loaded."""
        if has_expired(self.loaded.certificate):
            log.warning(
                "the certificate has expired: clients refuse it; renew it",
                extra={"listener": listener, "subject": self.loaded.certificate.subject},
            )

    def load(self, settings: TlsSettings) -> LoadedTls:
        """Read the files.

        Raises:
            ConfigError: They are not usable.
        """
        location = settings.keystore_location
        found = location and stat_of(location)
        if location and found:
            warn_if_others_read(Path(location), found, KEYSTORE_LOCATION)
        # not at the top: a host without TLS starts without it
        from odradek.net.tls_context import load_tls

        try:
            loaded = load_tls(settings)
            self.prepare(loaded)
        except ConfigError as error:
            raise ConfigError(error.path, f"listener {self.listener}: {error.problem}") from None
        return loaded

    def require(self, prepare: Callable[[LoadedTls], None]) -> None:
        """Check or change the loaded certificates now, and on any thread those of each later load before they
        are used.

        Raises:
            ConfigError: The present ones are not usable; what `prepare` raises.
        """
        self.prepare = prepare
        try:
            prepare(self.loaded)
        except ConfigError as error:
            raise ConfigError(error.path, f"listener {self.listener}: {error.problem}") from None

    def stamps_of(self, settings: TlsSettings) -> Sequence[Stamp]:
        """Return the present state of each file of other settings, or of the same."""
        return stamps(settings)

    def replacement(self, settings: TlsSettings) -> LoadedTls:
        """Load other settings, or files that have changed, without using them yet.

        Raises:
            ConfigError: They are not usable, or the certificate has expired or is for something else.
        """
        found = self.load(settings)
        if has_expired(found.certificate) and not has_expired(self.loaded.certificate):
            raise ConfigError(KEYSTORE_LOCATION, f"listener {self.listener}: the new certificate has expired")
        check_same(self.listener, self.loaded.certificate, found.certificate, settings)
        return found

    def attempt(self, settings: TlsSettings) -> LoadedTls | ConfigError:
        """Load other settings, or files that have changed, on any thread; return the error if that fails."""
        try:
            return self.replacement(settings)
        except ConfigError as error:
            return error

    def take(self, found: LoadedTls | ConfigError, files: Sequence[Stamp]) -> None:
        """Use a context for new connections from now on; after an error the old one stays.

        Args:
            found: The result of an attempt.
            files: The state of the files before the attempt.
        """
        self.stamps = files
        if isinstance(found, ConfigError):
            self.failed_reloads += 1
            self.is_stale = True
            log.error(
                "certificates not reloaded, the old ones stay",
                extra={"listener": self.listener, "problem": str(found)},
            )
            return
        self.loaded = found
        self.reloads += 1
        self.is_stale = False
        log.info(
            "certificates reloaded", extra={"listener": self.listener, "subject": found.certificate.subject}
        )

    def days_left(self, now_ms: int) -> float:
        """Return the days until the certificate expires; negative if it has expired."""
        return (self.loaded.certificate.not_after_ms - now_ms) / DAY_MS

    def principal(self, transport: asyncio.BaseTransport) -> str | None:
        """Return the principal of a new connection; None if its client has no certificate.

        Raises:
            UnknownPrincipal: No rule applies to the certificate, or it has no subject.
        """
        if self.loaded.settings.client_auth == NONE:
            return None
        from odradek.security.certificate import read_certificate

        der = transport.get_extra_info("ssl_object").getpeercert(True)
        if der is None:
            return None
        subject = read_certificate(der).subject
        if not subject:
            raise UnknownPrincipal("the certificate of the client has no subject")
        try:
            return f"User:{self.loaded.settings.principal_mapping.name(subject)}"
        except NoMatchingRule as error:
            raise UnknownPrincipal(str(error)) from None


def has_expired(certificate: Certificate) -> bool:
    """Whether clients refuse a certificate by now. It depends on the system's clock, as for OpenSSL."""
    return certificate.not_after_ms <= time.time() * 1000


def stamps(settings: TlsSettings) -> Sequence[Stamp]:
    """Return the state of each file of the settings."""
    return [
        stamp(location)
        for location in (settings.keystore_location, settings.truststore_location)
        if location is not None
    ]


def stamp(location: str) -> Stamp:
    """Return the state of a file."""
    found = stat_of(location)
    return None if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)


def stat_of(location: str) -> os.stat_result | None:
    """Return what the system knows about a file; None if there is none."""
    try:
        return expanded(location).stat()
    except OSError:
        return None


def check_same(listener: str, old: Certificate, new: Certificate, settings: TlsSettings) -> None:
    """Check that a new certificate is for the same server, unless the settings allow another; as Kafka does.

    Raises:
        ConfigError: It is not.
    """
    if not settings.allow_dn_changes and new.canonical_subject != old.canonical_subject:
        raise ConfigError(
            KEYSTORE_LOCATION,
            f"listener {listener}: Keystore DistinguishedName does not match: existing={old.subject}, "
            f"new={new.subject}; ssl.allow.dn.changes allows it",
        )
    missing = old.alternative_names - new.alternative_names
    if not settings.allow_san_changes and missing:
        raise ConfigError(
            KEYSTORE_LOCATION,
            f"listener {listener}: Keystore SubjectAltNames do not match: "
            f"the new certificate lacks {', '.join(sorted(missing))}; ssl.allow.san.changes allows it",
        )
