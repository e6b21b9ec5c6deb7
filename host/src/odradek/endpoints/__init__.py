"""Endpoints that plugins connect to, and listeners of plugins: addresses, certificates and secrets.

Files of certificates and secrets may change while the host runs. Nothing here opens a socket, but for
`http_client` and `http_server`, which are not imported here: they need aiohttp.

>>> from odradek.endpoints import read_address
>>> from odradek.plugin import PluginConfig
>>> read_address(PluginConfig("plugins.mine", {"listener": "[::1]:4318"}), "listener")
Address(host='::1', port=4318)
"""

from __future__ import annotations

from odradek.bounds.small_file import expanded, read_small_file
from odradek.endpoints.credentials import (
    OURS,
    BadSecret,
    Credentials,
    SecretKind,
    checked_headers,
    read_secret,
    read_secrets,
)
from odradek.endpoints.listener_tls import ListenerTls, RenewedTls, not_renewed
from odradek.endpoints.listeners import (
    Address,
    parsed_address,
    read_address,
    read_listener_tls,
    read_token_file,
    read_tokens,
)
from odradek.endpoints.refusals import Misdirected, Unauthorized, titled, with_credentials
from odradek.endpoints.shares import Shares, holder_of, parsed_ip
from odradek.endpoints.tls_files import BadCertificate, TlsFiles, read_tls_files
from odradek.endpoints.token_file import TokenError, token_path, with_token_file
from odradek.endpoints.watched_files import WatchedFiles

__all__ = [
    "OURS",
    "Address",
    "BadCertificate",
    "BadSecret",
    "Credentials",
    "ListenerTls",
    "Misdirected",
    "RenewedTls",
    "SecretKind",
    "Shares",
    "TlsFiles",
    "TokenError",
    "Unauthorized",
    "WatchedFiles",
    "checked_headers",
    "expanded",
    "holder_of",
    "not_renewed",
    "parsed_address",
    "parsed_ip",
    "read_address",
    "read_listener_tls",
    "read_secret",
    "read_secrets",
    "read_small_file",
    "read_tls_files",
    "read_token_file",
    "read_tokens",
    "titled",
    "token_path",
    "with_credentials",
    "with_token_file",
]
