"""A properties file of Kafka's Java clients as options of librdkafka: a gateway and its exporter share it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from odradek.endpoints import expanded
from odradek.plugin import PluginConfig
from odradek.settings.properties import JAAS, UNSECURED_SUBJECT, jaas_options, properties

KEY: Final = "command.config"
SAME: Final = (
    "security.protocol",
    "sasl.mechanism",
    "sasl.username",
    "sasl.password",
    "sasl.oauthbearer.token.endpoint.url",
    "ssl.key.password",
)
"""Keys of both."""
PEM: Final = {
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
}
"""Texts, by the key of Java."""
NOT_THERE: Final = ("ssl.cipher.suites", "ssl.enabled.protocols")
"""Keys that make a connection safer, and that librdkafka does not have."""
TRUST, TRUST_TYPE = "ssl.truststore.location", "ssl.truststore.type"
STORE, STORE_TYPE = "ssl.keystore.location", "ssl.keystore.type"
IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"


def from_command_config(config: PluginConfig, key: str) -> dict[str, str]:
    """The options of a properties file about security; empty if the table names none. Other keys are ignored.

    Args:
        config: The table of the plugin.
        key: Of the file.

    Raises:
        ConfigError: The file cannot be read, or has what librdkafka cannot do.
    """
    name = config.text(key)
    if not name:
        return {}
    try:
        found = properties(expanded(name).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise config.error(key, f"{name} cannot be read: {error}") from error
    for each in NOT_THERE:
        if each in found:
            raise config.error(key, f"{name}: librdkafka has no option for {each}; write a file without it")
    options = {each: found[each] for each in SAME if each in found}
    options |= {PEM[each]: text.replace("\\n", "\n") for each, text in found.items() if each in PEM}
    options |= login(found)
    options |= stores(config, key, found)
    if found.get(IDENTIFICATION) == "":
        options[IDENTIFICATION] = "none"
    return options


def login(found: Mapping[str, str]) -> dict[str, str]:
    """The login module as options."""
    jaas = jaas_options(found.get(JAAS, ""))
    names = {"username": "sasl.username", "password": "sasl.password"}
    options = {names[each]: text for each, text in jaas.items() if each in names}
    if UNSECURED_SUBJECT in jaas:
        options["enable.sasl.oauthbearer.unsecure.jwt"] = "true"
        options["sasl.oauthbearer.config"] = f"principal={jaas[UNSECURED_SUBJECT]}"
    return options


def stores(config: PluginConfig, key: str, found: Mapping[str, str]) -> dict[str, str]:
    """The files of trusted authorities and of the own certificate as options.

    Raises:
        ConfigError: A store is of a type that librdkafka does not read.
    """
    options = {}
    if TRUST in found:
        if found.get(TRUST_TYPE) != "PEM":
            raise config.error(
                key, f"librdkafka reads trusted certificates as PEM only: set {TRUST_TYPE}=PEM"
            )
        options["ssl.ca.location"] = found[TRUST]
    if STORE in found:
        kind = found.get(STORE_TYPE, "JKS")
        if kind == "PEM":
            options["ssl.certificate.location"] = options["ssl.key.location"] = found[STORE]
        elif kind == "PKCS12":
            options[STORE] = found[STORE]
            options["ssl.keystore.password"] = found.get("ssl.keystore.password", "")
        else:
            raise config.error(key, f"librdkafka reads no key store of type {kind}: expected PEM or PKCS12")
    return options
