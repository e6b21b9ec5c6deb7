"""TLS of a client, with the keys of Kafka's clients."""

from __future__ import annotations

import socket
import ssl
from dataclasses import dataclass, field
from typing import Final

from odradek.client.address import Address
from odradek.client.errors import ConnectFailed, TimedOut
from odradek.endpoints.tls_context import default_context
from odradek.plugin.config import ConfigError
from odradek.security.cipher_suites import openssl_names
from odradek.security.key_store import as_file, read_key_store, read_trust_store
from odradek.security.tls_settings import CIPHER_SUITES, TLS_1_2, TLS_1_3, TRUSTSTORE_LOCATION, TlsSettings

VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTls:
    """How a client verifies brokers, and the certificate that it shows them."""

    settings: TlsSettings = field(default_factory=TlsSettings)
    check_host: bool = True
    """Whether the certificate of a broker must have the name that the client connects to."""

    def context(self) -> ssl.SSLContext:
        """Read the files and return the context of new connections.

        Raises:
            ConfigError: A file cannot be read, or OpenSSL refuses its content.
        """
        trusted = read_trust_store(self.settings)
        try:
            context = default_context(cadata=trusted)
        except ssl.SSLError as error:
            raise ConfigError(TRUSTSTORE_LOCATION, f"cannot load the certificates: {error}") from None
        context.check_hostname = self.check_host
        versions = [VERSIONS[each] for each in self.settings.enabled_protocols]
        context.minimum_version, context.maximum_version = min(versions), max(versions)
        if self.settings.cipher_suites:
            try:
                context.set_ciphers(":".join(openssl_names(self.settings.cipher_suites)))
            except (ValueError, ssl.SSLError) as error:
                raise ConfigError(CIPHER_SUITES, f"OpenSSL does not have these suites: {error}") from None
        key_store = read_key_store(self.settings)
        if key_store is not None:
            try:
                with as_file(key_store.key + key_store.chain) as path:
                    # always with a password: OpenSSL asks the terminal for a missing one
                    context.load_cert_chain(path, None, lambda: key_store.password)
            except (ssl.SSLError, ValueError) as error:
                raise key_store.refused(error) from None
        return context


def secured(plain: socket.socket, address: Address, context: ssl.SSLContext) -> ssl.SSLSocket:
    """Do the TLS handshake of a new connection, within the timeout of its socket.

    Raises:
        ConnectFailed: The broker is not the one that the client expects, or does not speak TLS.
        TimedOut: The broker does not answer in time.
    """
    try:
        return context.wrap_socket(plain, server_hostname=address.host)
    except ssl.SSLCertVerificationError as error:
        plain.close()
        raise ConnectFailed(f"{address}: the certificate is refused: {error.verify_message}") from None
    except TimeoutError:
        plain.close()
        raise TimedOut(f"{address}: no TLS handshake in time; is this a listener with TLS?") from None
    except OSError as error:
        plain.close()
        raise ConnectFailed(
            f"{address}: the TLS handshake failed: {tls_reason(error)}; is this a listener with TLS?"
        ) from None


def tls_reason(error: OSError) -> str:
    """The reason of a failure, in OpenSSL's words."""
    return str(getattr(error, "reason", None) or error.strerror or error).lower().replace("_", " ")
