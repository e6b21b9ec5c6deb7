"""The settings of TLS, with Kafka's keys; the same keys configure a listener and a client."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odradek.plugin.config import ConfigError, PluginConfig
from odradek.security.principal_mapping import UNMAPPED, PrincipalMapping, parse_rules
from odradek.settings.kinds import LONG, TEXT, Choice, Flag, Items, Special, Whole
from odradek.settings.setting import Scope, setting
from odradek.wire.config_resource import ConfigType

PEM, PKCS12, JKS = "PEM", "PKCS12", "JKS"
STORE_TYPE: Final = Choice({each: each for each in (PEM, PKCS12, JKS)})
NONE, REQUESTED, REQUIRED = "none", "requested", "required"
CLIENT_AUTH: Final = Choice({each: each for each in (NONE, REQUESTED, REQUIRED)})
TLS_1_2, TLS_1_3 = "TLSv1.2", "TLSv1.3"
SECRET: Final = Special(type=ConfigType.PASSWORD, shape="text", read=PluginConfig.text, parse=str, text=str)
KEYSTORE_LOCATION, KEYSTORE_KEY = "ssl.keystore.location", "ssl.keystore.key"
KEYSTORE_CHAIN, KEYSTORE_TYPE = "ssl.keystore.certificate.chain", "ssl.keystore.type"
KEYSTORE_PASSWORD, KEY_PASSWORD = "ssl.keystore.password", "ssl.key.password"  # keys
TRUSTSTORE_LOCATION, TRUSTSTORE_TYPE = "ssl.truststore.location", "ssl.truststore.type"
TRUSTSTORE_PASSWORD, TRUSTSTORE_CERTIFICATES = "ssl.truststore.password", "ssl.truststore.certificates"
CIPHER_SUITES, PRINCIPAL_MAPPING = "ssl.cipher.suites", "ssl.principal.mapping.rules"
JKS_ADVICE: Final = (
    "JKS files are not supported; convert it with: keytool -importkeystore -srckeystore {file} "
    "-destkeystore {file}.p12 -deststoretype PKCS12, then set {key} = PKCS12"
)


def read_rules(table: PluginConfig, key: str) -> PrincipalMapping:
    """Return the mapping rules of a configuration file.

    Raises:
        ConfigError: A rule is invalid.
    """
    try:
        # a list cannot be split at its commas, because patterns contain commas
        return parse_rules(table.text(key) or "")
    except ValueError as error:
        raise table.error(key, str(error)) from None


RULES: Final = Special(type=ConfigType.STRING, shape="text", read=read_rules, parse=parse_rules, text=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """The settings of one end of TLS connections."""

    # fmt: off
    keystore_type: str = setting(
        KEYSTORE_TYPE, STORE_TYPE, PEM,
        "Format of the key store; `PKCS12` needs the extra `odradek[tls]`, `JKS` files have to be converted.",
        scope=Scope.LISTENER, by_listener=True,
    )
    keystore_location: str | None = setting(
        KEYSTORE_LOCATION, TEXT, None,
        "File with the private key and the certificate chain of SSL listeners, the listener's certificate "
        "first.", scope=Scope.LISTENER, by_listener=True, unset="none",
        page="cli.md#odradek-certs",
    )
    keystore_password: str | None = setting(
        KEYSTORE_PASSWORD, SECRET, None, "Password of a PKCS12 key store.",
        scope=Scope.LISTENER, by_listener=True, sensitive=True, unset="none",
    )
    certificate_chain: str | None = setting(
        KEYSTORE_CHAIN, SECRET, None,
        "The certificate chain as PEM text instead of a file, the listener's certificate first.",
        scope=Scope.LISTENER, by_listener=True, sensitive=True, unset="none",
    )
    key: str | None = setting(
        KEYSTORE_KEY, SECRET, None, "The private key as PEM text instead of a file.",
        scope=Scope.LISTENER, by_listener=True, sensitive=True, unset="none",
    )
    key_password: str | None = setting(
        KEY_PASSWORD, SECRET, None, "Password of an encrypted private key.",
        scope=Scope.LISTENER, by_listener=True, sensitive=True, unset="none",
    )
    truststore_type: str = setting(
        TRUSTSTORE_TYPE, STORE_TYPE, PEM, "Format of the trust store, as `ssl.keystore.type`.",
        scope=Scope.LISTENER, by_listener=True,
    )
    truststore_location: str | None = setting(
        TRUSTSTORE_LOCATION, TEXT, None,
        "File with the certificates of the authorities that issue the certificates of clients.",
        scope=Scope.LISTENER, by_listener=True, unset="the system's",
    )
    truststore_password: str | None = setting(
        TRUSTSTORE_PASSWORD, SECRET, None, "Password of a PKCS12 trust store.",
        scope=Scope.LISTENER, by_listener=True, sensitive=True, unset="none",
    )
    trusted_certificates: str | None = setting(
        TRUSTSTORE_CERTIFICATES, SECRET, None,
        "The certificates of the authorities as PEM text instead of a file.",
        scope=Scope.LISTENER, by_listener=True, sensitive=True, unset="none",
    )
    client_auth: str = setting(
        "ssl.client.auth", CLIENT_AUTH, NONE,
        "Whether clients of SSL listeners need a certificate; its subject is then their principal. A "
        "SASL_SSL listener only uses its own value, and the principal stays that of SASL.", by_listener=True,
    )
    enabled_protocols: tuple[str, ...] = setting(
        "ssl.enabled.protocols", Items((TLS_1_2, TLS_1_3), least=1), (TLS_1_2, TLS_1_3),
        "Versions of TLS.", by_listener=True,
    )
    cipher_suites: tuple[str, ...] = setting(
        CIPHER_SUITES, Items(), (),
        "Cipher suites by their IANA names; of TLS 1.3 either all or none.", by_listener=True,
        unset="those of OpenSSL",
    )
    principal_mapping: PrincipalMapping = setting(
        PRINCIPAL_MAPPING, RULES, UNMAPPED,
        "Rules that make a user name from the subject of a client's certificate, as "
        "`RULE:PATTERN/REPLACEMENT/[L|U]` or `DEFAULT`, with commas.", by_listener=True,
    )
    allow_dn_changes: bool = setting(
        "ssl.allow.dn.changes", Flag(), False,
        "Whether a certificate that is loaded at run time may have another subject.", by_listener=True,
    )
    allow_san_changes: bool = setting(
        "ssl.allow.san.changes", Flag(), False,
        "Whether a certificate that is loaded at run time may lack alternative names of the one before.",
        by_listener=True,
    )
    reload_interval_ms: int = setting(
        "ssl.reload.interval.ms", Whole(LONG), 10_000,
        "How often the files of key stores and trust stores are checked for changes; 0 never.", unit="ms",
    )
    # fmt: on

    def check(self) -> None:
        """Check that the values do not contradict each other, in Kafka's words.

        Raises:
            ConfigError: They do.
        """
        for key, contradicts, problem in (
            (KEYSTORE_KEY, self.key and not self.certificate_chain,
             "SSL private key is specified, but certificate chain is not specified."),
            (KEYSTORE_CHAIN, self.certificate_chain and not self.key,
             "SSL certificate chain is specified, but private key is not specified"),
            (KEYSTORE_TYPE, self.key and self.keystore_type != PEM,
             f"SSL private key can be specified only for PEM, but key store type is {self.keystore_type}."),
            (KEYSTORE_LOCATION, self.key and self.keystore_location,
             "Both SSL key store location and separate private key are specified."),
            (KEYSTORE_PASSWORD, self.keystore_password and self.keystore_type == PEM,
             "SSL key store password cannot be specified with PEM format, "
             "only key password may be specified."),
            (TRUSTSTORE_TYPE, self.trusted_certificates and self.truststore_type != PEM,
             "SSL trust store certs can be specified only for PEM, but trust store type is "
             f"{self.truststore_type}."),
            (TRUSTSTORE_LOCATION, self.trusted_certificates and self.truststore_location,
             "Both SSL trust store location and separate trust certificates are specified."),
            (TRUSTSTORE_PASSWORD, self.truststore_password and self.truststore_type == PEM,
             "SSL trust store password cannot be specified for PEM format."),
        ):  # fmt: skip
            if contradicts:
                raise ConfigError(key, problem)
        for key, kind, location in (
            (KEYSTORE_TYPE, self.keystore_type, self.keystore_location),
            (TRUSTSTORE_TYPE, self.truststore_type, self.truststore_location),
        ):
            if kind == JKS:
                raise ConfigError(key, JKS_ADVICE.format(file=location or "FILE", key=key))
