"""Broker addresses: ``host:port``, and lists of them."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.plugin.config import ConfigError

EXPECTED = "expected host:port[,host:port...]"


@dataclass(frozen=True, slots=True)
class Address:
    """The host and port of a broker's listener."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def addresses(bootstrap: str, path: str = "bootstrap.servers") -> list[Address]:
    """Parse a bootstrap list. A ``PROTOCOL://`` prefix is ignored, as in Kafka.

    Args:
        bootstrap: ``h1:9092,[::1]:9093``.
        path: The name of the list in error messages.

    Raises:
        ConfigError: The list is empty, or an item is not an address.
    """
    found = [address(item.strip(), path) for item in bootstrap.split(",") if item.strip()]
    if not found:
        raise ConfigError(path, f"{EXPECTED}, found {bootstrap!r}")
    return found


def address(text: str, path: str) -> Address:
    """Parse one address.

    Raises:
        ConfigError: The text is not an address.
    """
    host, colon, digits = text.rpartition("://")[2].rpartition(":")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    bracketed = bare is not host
    if not colon or not bare or (":" in bare and not bracketed) or not is_port(digits):
        raise ConfigError(path, f"{EXPECTED}, found {text!r}")
    return Address(bare, int(digits))


def is_port(digits: str) -> bool:
    """Whether the text is a port number from 1 to 65535."""
    return digits.isascii() and digits.isdigit() and 0 < int(digits) < 65536
