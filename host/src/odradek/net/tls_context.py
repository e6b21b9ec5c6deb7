"""The TLS context of a listener, made from its settings."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Final

from odradek.plugin.config import ConfigError
from odradek.security.certificate import Certificate
from odradek.security.cipher_suites import TLS_1_3_SUITES, openssl_names
from odradek.security.key_store import KeyStore, as_file, read_key_store, read_trust_store
from odradek.security.tls_settings import (
    CIPHER_SUITES,
    KEYSTORE_LOCATION,
    NONE,
    REQUESTED,
    REQUIRED,
    TLS_1_2,
    TLS_1_3,
    TlsSettings,
)

VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}
CLIENT_AUTH: Final = {NONE: ssl.CERT_NONE, REQUESTED: ssl.CERT_OPTIONAL, REQUIRED: ssl.CERT_REQUIRED}


class ClientTls(ssl.SSLObject):
    """The TLS of one connection of a client."""

    server_name: str = ""
    """The name that the client has asked for, if the listener looks at it."""
    refusal: str | None = None
    """Why the listener has refused the server name."""

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except ssl.SSLError as error:
            if self.refusal is not None:
                error.reason = self.refusal  # instead of OpenSSL's "callback failed"
            raise


class ListenerContext(ssl.SSLContext):
    """The context of a listener."""

    sslobject_class = ClientTls


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTls:
    """A context for new connections."""

    settings: TlsSettings
    context: ssl.SSLContext
    certificate: Certificate
    """The listener's own."""


def load_tls(settings: TlsSettings) -> LoadedTls:
    """Read the files of a listener's settings and make its context.

    Raises:
        ConfigError: A file cannot be read, or OpenSSL refuses its content.
    """
    key_store = read_key_store(settings)
    if key_store is None:
        raise ConfigError(KEYSTORE_LOCATION, "expected a file with the private key and the certificates")
    certificate = key_store.certificates[0]
    context = ListenerContext(ssl.PROTOCOL_TLS_SERVER)
    # renegotiation lets a client of TLS 1.2 cause handshakes without end
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_CIPHER_SERVER_PREFERENCE
    choose_versions(context, settings)
    load_key(context, key_store)
    if settings.client_auth != NONE:
        context.verify_mode = CLIENT_AUTH[settings.client_auth]
        load_trust(context, settings)
        # a resumed session would keep the principal of a certificate that has expired since
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
    return LoadedTls(settings=settings, context=context, certificate=certificate)


def choose_versions(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Set the versions of TLS and the cipher suites.

    Raises:
        ConfigError: A cipher suite is unknown, or no version is left.
    """
    versions = {VERSIONS[each] for each in settings.enabled_protocols}
    if settings.cipher_suites:
        try:
            names = openssl_names(settings.cipher_suites)
            if names:
                context.set_ciphers(":".join(names))
        except (ValueError, ssl.SSLError) as error:
            raise ConfigError(CIPHER_SUITES, f"OpenSSL does not have these suites: {error}") from None
        missing = set(names) - {each["name"] for each in context.get_ciphers()}
        if missing:
            raise ConfigError(CIPHER_SUITES, f"OpenSSL does not have {', '.join(sorted(missing))}")
        if not names:
            versions -= {ssl.TLSVersion.TLSv1_2}
        if not TLS_1_3_SUITES.intersection(settings.cipher_suites):
            versions -= {ssl.TLSVersion.TLSv1_3}
        if not versions:
            raise ConfigError(CIPHER_SUITES, "has no suite of the versions in ssl.enabled.protocols")
    context.minimum_version, context.maximum_version = min(versions), max(versions)


def load_key(context: ssl.SSLContext, key_store: KeyStore) -> None:
    """Load the private key and the certificate chain.

    Raises:
        ConfigError: The password is wrong, or key and certificate do not belong together.
    """
    try:
        with as_file(key_store.key + key_store.chain) as path:
            # always with a password: OpenSSL asks the terminal for a missing one
            context.load_cert_chain(path, None, lambda: key_store.password)
    except (ssl.SSLError, ValueError) as error:
        raise key_store.refused(error) from None


def load_trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    """Load the authorities that clients' certificates may come from.

    Raises:
        ConfigError: A file cannot be read.
    """
    trusted = read_trust_store(settings)
    if trusted is None:
        context.set_default_verify_paths()
        return
    try:
        context.load_verify_locations(cadata=trusted)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError("ssl.truststore.location", f"cannot load the certificates: {error}") from None
