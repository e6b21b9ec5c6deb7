"""Whether a certificate is valid for the names that clients dial."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from odradek.plugin.config import ConfigError
from odradek.security.tls_settings import KEYSTORE_LOCATION

if TYPE_CHECKING:
    from odradek.security.certificate import Certificate

SHOWN: Final = 3


def covers(certificate: Certificate, host: str) -> bool:
    """Whether a certificate has the name or address of a host, or a wildcard for its first label (RFC 6125).

    Clients refuse a wildcard for all names of a top-level domain.
    """
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.lower().rstrip(".")
        domain = name.partition(".")[2]
        accepted = {f"DNS:{name}", f"DNS:*.{domain}"} if "." in domain else {f"DNS:{name}"}
        return not accepted.isdisjoint(certificate.alternative_names)
    return f"IP:{address}" in certificate.alternative_names


def check_covers(certificate: Certificate, hosts: Sequence[str]) -> None:
    """Check that clients will accept a certificate for the advertised hosts.

    Raises:
        ConfigError: They will not.
    """
    missing = [host for host in hosts if not covers(certificate, host)]
    if missing:
        names = ", ".join(sorted(certificate.alternative_names)) or "no name"
        more = f" and {len(missing) - SHOWN} more" if len(missing) > SHOWN else ""
        raise ConfigError(
            KEYSTORE_LOCATION,
            f"the certificate is for {names}, but clients are told to dial "
            f"{', '.join(map(repr, missing[:SHOWN]))}{more}; get a certificate with these names (a wildcard "
            "stands for one label), or change advertised.listeners or gateway.node.names",
        )
