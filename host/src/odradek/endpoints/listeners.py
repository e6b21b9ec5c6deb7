"""The keys of a plugin's listener: its address, its certificates, and the tokens of its clients."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from odradek.bounds.small_file import read_small_file
from odradek.endpoints.listener_tls import ListenerTls
from odradek.plugin.config import PluginConfig

ADDRESS: Final = re.compile(r"(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(?P<port>[0-9]{1,5})")
MAX_PORT: Final = 65_535


class Address(NamedTuple):
    """The address of a listener."""

    host: str
    port: int
    """0 chooses a free one."""

    @property
    def hosts(self) -> list[str]:
        """The addresses to bind: ``::`` takes IPv4 as well, as with Kafka's listeners."""
        return [self.host, "0.0.0.0"] if self.host == "::" else [self.host]

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def read_listener_tls(config: PluginConfig, prefix: str) -> ListenerTls | None:
    """Read the files of TLS; None without a certificate.

    Args:
        config: The table.
        prefix: Of the keys ``certificate``, ``key`` and ``client.ca``.

    Raises:
        ConfigError: A file is unusable, or there is no certificate.
    """
    certificate = config.file(f"{prefix}certificate")
    key, client_ca = config.file(f"{prefix}key"), config.file(f"{prefix}client.ca")
    if certificate is None:
        if key is not None or client_ca is not None:
            raise config.error(f"{prefix}certificate", "expected the certificate of the listener")
        return None
    files = ListenerTls(certificate=certificate, key=key, client_ca=client_ca)
    try:
        files.context()
    except (OSError, ValueError) as error:
        raise config.error(f"{prefix}certificate", str(error)) from None
    return files


def read_address(config: PluginConfig, key: str) -> Address | None:
    """Read the address of a listener; None if it is not set.

    Raises:
        ConfigError: The text is not of the form HOST:PORT.
    """
    text = config.text(key)
    if text is None:
        return None
    found = parsed_address(text)
    if found is None:
        raise config.error(key, f"expected HOST:PORT, found {text!r}")
    return found


def parsed_address(text: str) -> Address | None:
    """The address that a text names; None if it is not of the form HOST:PORT."""
    found = ADDRESS.fullmatch(text)
    if found is None or int(found["port"]) > MAX_PORT:
        return None
    return Address(found["host"].strip("[]"), int(found["port"]))


def read_token_file(config: PluginConfig, key: str) -> Path | None:
    """A file with the tokens of clients, read once to check it; None if the key is not set.

    Raises:
        ConfigError: The file cannot be read, or has no token.
    """
    path = config.file(key)
    if path is not None:
        try:
            read_tokens(path)
        except (OSError, ValueError) as error:
            raise config.error(key, str(error)) from None
    return path


def read_tokens(path: Path) -> list[bytes]:
    """The tokens of a file, one a line.

    Raises:
        OSError: The file cannot be read.
        ValueError: It has no token.
    """
    tokens = read_small_file(path).split()
    if not tokens:
        raise ValueError(f"{path} has no token")
    return tokens
