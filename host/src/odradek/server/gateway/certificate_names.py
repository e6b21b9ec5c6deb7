"""Whether a certificate is valid for the name that clients dial."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from odradek.plugin.config import ConfigError
from odradek.security.tls_settings import KEYSTORE_LOCATION

if TYPE_CHECKING:
    from odradek.security.certificate import Certificate


def covers(certificate: Certificate, host: str) -> bool:
    """Whether a certificate has the name or address of a host, or a wildcard for one label (RFC 6125)."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.lower().rstrip(".")
        wildcard = "*." + name.partition(".")[2]
        return not {f"DNS:{name}", f"DNS:{wildcard}"}.isdisjoint(certificate.alternative_names)
    return f"IP:{address}" in certificate.alternative_names


def check_covers(certificate: Certificate, host: str, listener: str) -> None:
    """Check that clients will accept a certificate for the advertised host.

    Raises:
        ConfigError: They will not.
    """
    if not covers(certificate, host):
        names = ", ".join(sorted(certificate.alternative_names)) or "no name"
        raise ConfigError(
            KEYSTORE_LOCATION,
            f"listener {listener}: the certificate is for {names}, but clients are told to dial {host!r}; "
            "set advertised.listeners to a name of the certificate",
        )
