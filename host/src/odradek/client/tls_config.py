"""TLS of a client, with the keys of Kafka's clients."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from typing import Final

from odradek.endpoints.tls_context import default_context
from odradek.plugin.config import ConfigError, PluginConfig
from odradek.security.cipher_suites import openssl_names
from odradek.security.key_store import as_file, read_key_store, read_trust_store
from odradek.security.tls_settings import CIPHER_SUITES, TLS_1_2, TLS_1_3, TRUSTSTORE_LOCATION, TlsSettings
from odradek.settings.reading import read_settings

IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
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


def client_tls(config: PluginConfig) -> ClientTls:
    """Read the keys of TLS.

    Raises:
        ConfigError: A value is wrong, or two values contradict each other.
    """
    algorithm = config.text(IDENTIFICATION, "https")
    if algorithm not in ("https", ""):
        raise config.error(IDENTIFICATION, f"expected https, or nothing for no check, found {algorithm!r}")
    return ClientTls(settings=read_settings(TlsSettings, config), check_host=algorithm == "https")
