"""Where to send, and how: the plugin's table, with the variables that OpenTelemetry defines as defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import unquote

from odradek.plugin import PluginConfig
from odradek_otlp.endpoints import grpc_target, metrics_url

PREFIXES = ("OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_")
"""The variable for metrics wins over the one for all signals."""
HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
GRPC_HEADER_NAME = re.compile(r"[a-z0-9_.-]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
OURS = ("content-encoding", "content-length", "content-type", "te", "transfer-encoding")
"""Headers that say what the body is."""


class OtlpProtocol(StrEnum):
    """``http/json`` is not offered: the payloads are forwarded as the bytes they are."""

    GRPC = "grpc"
    HTTP = "http/protobuf"


class Compression(StrEnum):
    """Of the request body. zstd is for HTTP only, and not every endpoint takes it."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpSettings:
    """One destination."""

    protocol: OtlpProtocol
    target: str
    """The whole URL for HTTP, ``host:port`` for gRPC."""
    secure: bool
    """TLS for gRPC; the URL says it for HTTP."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case. May hold secrets."""
    compression: Compression = Compression.NONE
    timeout_ms: int = 10_000


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a setting stands: a key of the table, or a variable."""

    config: PluginConfig
    key: str
    variable: bool = False


def read_settings(config: PluginConfig, environ: Mapping[str, str]) -> OtlpSettings | None:
    """The destination; None when no endpoint is given anywhere.

    A key of the table wins over a variable. Without an endpoint the variables are not judged: they may be
    meant for another program.

    Raises:
        ConfigError: A value makes no sense; names the key or the variable.
    """
    defaults = environ if has_endpoint(config, environ) else {}
    protocol = OtlpProtocol(choice(origin(config, "protocol", defaults), OtlpProtocol, OtlpProtocol.HTTP))
    compression = Compression(choice(origin(config, "compression", defaults), Compression, Compression.NONE))
    if protocol is OtlpProtocol.GRPC and compression is Compression.ZSTD:
        found = origin(config, "compression", defaults)
        raise found.config.error(found.key, "expected none or gzip for grpc, found 'zstd'")
    timeout = origin(config, "timeout.ms", defaults)
    timeout_ms = timeout.config.integer(timeout.key, 10_000, least=1)
    headers = headers_of(config, defaults, protocol)
    insecure = origin(config, "insecure", defaults)
    plain = insecure.config.boolean(insecure.key, default=False)
    endpoint = origin(config, "endpoint", defaults)
    text = endpoint.config.text(endpoint.key)
    if text is None:
        return None
    target, secure = destination(endpoint, text, protocol, plain)
    return OtlpSettings(
        protocol=protocol,
        target=target,
        secure=secure,
        headers=headers,
        compression=compression,
        timeout_ms=timeout_ms,
    )


def has_endpoint(config: PluginConfig, environ: Mapping[str, str]) -> bool:
    return config.value("endpoint") is not None or origin(config, "endpoint", environ).variable


def origin(config: PluginConfig, key: str, environ: Mapping[str, str]) -> Origin:
    """The table if it has the key, else the first variable that is set and not empty, else the table."""
    name = key.removesuffix(".ms").upper()
    if config.value(key) is None:
        for prefix in PREFIXES:
            value = environ.get(prefix + name, "").strip()
            if value:
                return Origin(PluginConfig("", {prefix + name: value}), prefix + name, variable=True)
    return Origin(config, key)


def choice(found: Origin, choices: type[StrEnum], default: StrEnum) -> str:
    return found.config.choice(found.key, default, [item.value for item in choices])


def destination(endpoint: Origin, text: str, protocol: OtlpProtocol, plain: bool) -> tuple[str, bool]:
    """Target, and whether gRPC speaks TLS."""
    try:
        if protocol is OtlpProtocol.GRPC:
            return grpc_target(text, plain)
        as_it_is = endpoint.variable and endpoint.key.startswith(PREFIXES[0])
        return metrics_url(text, as_it_is), text.lower().startswith("https:")
    except ValueError as error:
        raise endpoint.config.error(endpoint.key, str(error)) from None


def headers_of(config: PluginConfig, environ: Mapping[str, str], protocol: OtlpProtocol) -> dict[str, str]:
    """The table's headers; those of a variable when the table has none.

    An error never shows a value: it may be a secret.
    """
    path = "headers"
    if config.value(path) is not None:
        raise config.error(path, "expected a table of strings")
    rows = config.table(path)
    found = origin(config, path, environ)
    if not rows and found.variable:
        config, path = found.config, found.key
        rows = listed_headers(found)
    names = GRPC_HEADER_NAME if protocol is OtlpProtocol.GRPC else HEADER_NAME
    for name, value in rows.items():
        key = path if found.variable else f"{path}.{name}"
        lower = name.lower()
        if not names.fullmatch(lower) or lower.endswith("-bin"):
            raise config.error(key, f"expected a header's name, found {name!r}")
        if lower in OURS or (protocol is OtlpProtocol.GRPC and lower.startswith("grpc-")):
            raise config.error(key, f"the header {lower} is set by the plugin")
        if not HEADER_VALUE.fullmatch(value):
            raise config.error(key, f"expected printable ASCII in the value of {lower}")
    return {name.lower(): value for name, value in rows.items()}


def listed_headers(found: Origin) -> dict[str, str]:
    """``name=value,name=value``, percent-encoded, as in the variable."""
    rows: dict[str, str] = {}
    for item in found.config.texts(found.key):
        name, separator, value = item.partition("=")
        if not separator:
            raise found.config.error(found.key, "expected name=value,name=value")
        rows[unquote(name.strip())] = unquote(value.strip())
    return rows
