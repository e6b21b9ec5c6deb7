"""Reads the plugin's table. The environment variables of OpenTelemetry are its defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from urllib.parse import unquote

from odradek.endpoints import OURS, TlsFiles, read_secrets, read_tls_files
from odradek.plugin import PluginConfig
from odradek.temporality import read_totals
from odradek_otlp.endpoints import grpc_target, metrics_url
from odradek_otlp.otlp_settings import Compression, OtlpProtocol, OtlpSettings

PREFIXES = ("OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_")
"""The variable for metrics wins over the one for all signals."""
DESTINATIONS = "destinations."
DESTINATION_NAME = re.compile(r"[a-z0-9_-]{1,50}")
HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
GRPC_HEADER_NAME = re.compile(r"[a-z0-9_.-]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of a setting: a key of the table, or a variable."""

    config: PluginConfig
    key: str
    variable: bool = False


def read_destinations(config: PluginConfig, environ: Mapping[str, str]) -> dict[str, OtlpSettings]:
    """Read all destinations.

    Returns:
        The tables ``[plugins.otlp.destinations.<name>]`` by name. Without such tables: the destination of the
        table itself or of the variables, under the empty name; empty if no endpoint is configured.

    Raises:
        ConfigError: A value is invalid, or the table has both a destination of its own and named ones. Names
            the key or the variable.
    """
    tables: dict[str, dict[str, object]] = {}
    for key, value in config.values.items():
        if key.startswith(DESTINATIONS):
            name, _, rest = key.removeprefix(DESTINATIONS).partition(".")
            if not DESTINATION_NAME.fullmatch(name) or not rest:
                raise config.error(key, "expected destinations.NAME.KEY, with a NAME of a-z, 0-9, _ and -")
            tables.setdefault(name, {})[rest] = value
            config.known.add(key)
    if not tables:
        settings = read_settings(config, environ)
        return {} if settings is None else {"": settings}
    found = {}
    for name in sorted(tables):
        table = PluginConfig(f"{config.path}.{DESTINATIONS}{name}", tables[name])
        settings = read_settings(table, {})
        if settings is None:
            raise table.error("endpoint", "expected an endpoint: each destination needs one")
        table.finish()
        found[name] = settings
    refuse_shared_files(config, found)
    for key in own_keys(config):
        raise config.error(key, "expected in a destination: move it to [plugins.otlp.destinations.NAME]")
    return found


def refuse_shared_files(config: PluginConfig, found: Mapping[str, OtlpSettings]) -> None:
    """Refuse two destinations that would keep their totals in the same file or topic."""
    owners: dict[Path | str, str] = {}
    for name, settings in found.items():
        totals = settings.totals
        store = totals and (totals.file.resolve() if totals.file else totals.topic)
        if not store:
            continue
        other = owners.setdefault(store, name)
        if other != name:
            kind = "topic" if isinstance(store, str) else "file"
            key = f"{DESTINATIONS}{name}.totals.{kind}"
            raise config.error(key, f"expected a {kind} of its own, found that of the destination {other}")


def own_keys(config: PluginConfig) -> list[str]:
    """Keys of a destination in the plugin's own table: beside named destinations they have no effect."""
    known = PluginConfig(config.path, {"endpoint": "http://localhost"})
    read_settings(known, {})
    return [key for key in config.values if key in known.known or key.startswith("headers.")]


def read_settings(config: PluginConfig, environ: Mapping[str, str]) -> OtlpSettings | None:
    """Read one destination; None if neither table nor variables have an endpoint.

    A key of the table wins over a variable. Without an endpoint the variables are not checked: they may be
    meant for another program.

    Raises:
        ConfigError: A value is invalid; names the key or the variable.
    """
    defaults = environ if has_endpoint(config, environ) else {}
    protocol = OtlpProtocol(choice(origin(config, "protocol", defaults), OtlpProtocol, OtlpProtocol.HTTP))
    compression = Compression(choice(origin(config, "compression", defaults), Compression, Compression.NONE))
    if protocol is OtlpProtocol.GRPC and compression is Compression.ZSTD:
        found = origin(config, "compression", defaults)
        raise found.config.error(found.key, "expected none or gzip for grpc, found 'zstd'")
    timeout = origin(config, "timeout.ms", defaults)
    timeout_ms = timeout.config.integer(timeout.key, 10_000, least=1)
    connect_timeout_ms = config.integer("connect.timeout.ms", min(timeout_ms, 5_000), least=1)
    requests_in_flight = config.integer("requests.in.flight", 4, least=1, most=100)
    headers = headers_of(config, defaults, protocol)
    secrets = read_secrets(config, headers)
    metrics = tuple(config.texts("metrics"))
    if not all(metrics):
        raise config.error("metrics", "expected prefixes of metric names, found an empty one")
    insecure = origin(config, "insecure", defaults)
    plain = insecure.config.boolean(insecure.key, default=False)
    endpoint = origin(config, "endpoint", defaults)
    text = endpoint.config.text(endpoint.key)
    tls = tls_of(config, defaults)
    totals = read_totals(config)
    distinct_labels = config.boolean("labels.distinct", default=True)
    if text is None:
        return None
    target, secure = destination(endpoint, text, protocol, plain)
    refuse_idle_certificates(config, tls, secure)
    return OtlpSettings(
        protocol=protocol,
        target=target,
        secure=secure,
        tls=tls,
        headers=headers,
        secrets=secrets,
        compression=compression,
        timeout_ms=timeout_ms,
        connect_timeout_ms=connect_timeout_ms,
        requests_in_flight=requests_in_flight,
        metrics=() if "*" in metrics else metrics,
        distinct_labels=distinct_labels,
        totals=totals,
    )


def has_endpoint(config: PluginConfig, environ: Mapping[str, str]) -> bool:
    return config.value("endpoint") is not None or origin(config, "endpoint", environ).variable


def origin(config: PluginConfig, key: str, environ: Mapping[str, str]) -> Origin:
    """The table if it has the key, else the first variable that is set and not empty, else the table."""
    name = key.removesuffix(".ms").removesuffix(".file").replace(".", "_").upper()
    if config.value(key) is None:
        for prefix in PREFIXES:
            value = environ.get(prefix + name, "").strip()
            if value:
                return Origin(PluginConfig("", {prefix + name: value}), prefix + name, variable=True)
    return Origin(config, key)


def choice(found: Origin, choices: type[StrEnum], default: StrEnum) -> str:
    return found.config.choice(found.key, default, [item.value for item in choices])


def destination(endpoint: Origin, text: str, protocol: OtlpProtocol, plain: bool) -> tuple[str, bool]:
    """The target, and whether to use TLS."""
    try:
        if protocol is OtlpProtocol.GRPC:
            return grpc_target(text, plain)
        as_it_is = endpoint.variable and endpoint.key.startswith(PREFIXES[0])
        return metrics_url(text, as_it_is), text.strip().lower().startswith("https:")
    except ValueError as error:
        raise endpoint.config.error(endpoint.key, str(error)) from None


def tls_of(config: PluginConfig, environ: Mapping[str, str]) -> TlsFiles:
    """CA, certificate and key.

    Raises:
        ConfigError: A file is unusable, or a client certificate lacks its key or the reverse.
    """
    names = ("certificate.file", "client.certificate.file", "client.key.file")
    found = [origin(config, name, environ) for name in names]
    return read_tls_files([(each.config, each.key) for each in found])


def refuse_idle_certificates(config: PluginConfig, tls: TlsFiles, secure: bool) -> None:
    """Refuse certificates of the table if the endpoint is without TLS.

    Variables with certificates may be meant for other programs, so they are not refused.
    """
    for key in ("certificate.file", "client.certificate.file"):
        if tls.paths() and not secure and config.value(key) is not None:
            raise config.error(key, "the endpoint is without TLS: expected an endpoint with https://")


def headers_of(config: PluginConfig, environ: Mapping[str, str], protocol: OtlpProtocol) -> dict[str, str]:
    """The headers of the table, or of a variable if the table has none.

    Raises:
        ConfigError: A header is malformed. The error never shows a value: it may be a secret.
    """
    path = "headers"
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
            raise config.error(key, f"expected the name of a header, found {name!r}")
        if lower in OURS or (protocol is OtlpProtocol.GRPC and lower.startswith("grpc-")):
            raise config.error(key, f"the plugin sets the header {lower} itself: remove it")
        if not HEADER_VALUE.fullmatch(value):
            raise config.error(key, f"expected printable ASCII in the value of {lower}")
    return {name.lower(): value for name, value in rows.items()}


def listed_headers(found: Origin) -> dict[str, str]:
    """Parse the headers of a variable: ``name=value,name=value``, percent-encoded."""
    rows: dict[str, str] = {}
    for item in found.config.texts(found.key):
        name, separator, value = item.partition("=")
        if not separator:
            raise found.config.error(found.key, "expected name=value,name=value")
        rows[unquote(name.strip())] = unquote(value.strip())
    return rows
