"""Reads the plugin's table. The environment variables of OpenTelemetry are its defaults."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import unquote

from odradek.endpoints import TlsFiles, checked_headers, read_secrets, read_tls_files
from odradek.plugin import ConfigError, PluginConfig
from odradek.settings import read_settings as read_declared
from odradek.temporality import read_totals
from odradek_otlp.endpoints import grpc_target, metrics_url
from odradek_otlp.otlp_settings import EndpointSettings, OtlpProtocol, OtlpSettings

PREFIXES = ("OTEL_EXPORTER_OTLP_METRICS_", "OTEL_EXPORTER_OTLP_")
"""The variable for metrics wins over the one for all signals."""
VARIABLES = {
    "endpoint": "ENDPOINT",
    "protocol": "PROTOCOL",
    "headers": "HEADERS",
    "compression": "COMPRESSION",
    "timeout.ms": "TIMEOUT",
    "insecure": "INSECURE",
    "certificate.file": "CERTIFICATE",
    "client.certificate.file": "CLIENT_CERTIFICATE",
    "client.key.file": "CLIENT_KEY",
}
CERTIFICATES = ("certificate.file", "client.certificate.file", "client.key.file")
DESTINATIONS = "destinations."
DESTINATION_NAME = re.compile(r"[a-z0-9_-]{1,50}")
HEADER_NAME = re.compile(r"(?!.*-bin$)[a-z0-9!#$%&'*+.^_`|~-]+")
GRPC_HEADER_NAME = re.compile(r"(?!.*-bin$)[a-z0-9_.-]+")


@dataclass(slots=True)
class WithVariables(PluginConfig):
    """A table whose missing keys are read from variables."""

    environ: Mapping[str, str] = field(default_factory=dict)

    def variable(self, key: str) -> str | None:
        """The variable that is read for a key: the first one that is set and not empty; None if the table has
        the key, or if there is none.
        """
        if key not in VARIABLES or self.values.get(key) is not None:
            return None
        names = [prefix + VARIABLES[key] for prefix in PREFIXES]
        return next((name for name in names if self.environ.get(name, "").strip()), None)

    def value(self, key: str) -> object | None:
        """Read the raw value; None if neither the table nor a variable has it."""
        name = self.variable(key)
        return self.environ[name].strip() if name else PluginConfig.value(self, key)

    def error(self, key: str, problem: str) -> ConfigError:
        """An error that names the key, or the variable that was read for it."""
        name = self.variable(key)
        return ConfigError(name, problem) if name else PluginConfig.error(self, key, problem)


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
    known = WithVariables(config.path, config.values, config.known, config.tables, environ)
    if known.value("endpoint") is None:
        known.environ = {}
    place = read_declared(EndpointSettings, known)
    found = read_declared(OtlpSettings, known)
    headers = headers_of(known, found.protocol)
    secrets = read_secrets(known, headers)
    tls = read_tls_files([(known, key) for key in CERTIFICATES])
    totals = read_totals(known)
    if known.value("endpoint") is None:
        return None
    target, secure = destination(known, place, found.protocol)
    refuse_idle_certificates(config, tls, secure)
    return replace(
        found,
        target=target,
        secure=secure,
        tls=tls,
        headers=headers,
        secrets=secrets,
        connect_timeout_ms=min(found.timeout_ms, found.connect_timeout_ms),
        totals=totals,
    )


def destination(config: WithVariables, place: EndpointSettings, protocol: OtlpProtocol) -> tuple[str, bool]:
    """The target, and whether to use TLS."""
    try:
        if protocol is OtlpProtocol.GRPC:
            return grpc_target(place.endpoint, place.insecure)
        as_it_is = (config.variable("endpoint") or "").startswith(PREFIXES[0])
        return metrics_url(place.endpoint, as_it_is), place.endpoint.strip().lower().startswith("https:")
    except ValueError as error:
        raise config.error("endpoint", str(error)) from None


def refuse_idle_certificates(config: PluginConfig, tls: TlsFiles, secure: bool) -> None:
    """Refuse certificates of the table if the endpoint is without TLS.

    Variables with certificates may be meant for other programs, so they are not refused.
    """
    for key in ("certificate.file", "client.certificate.file"):
        if tls.paths() and not secure and config.value(key) is not None:
            raise config.error(key, "the endpoint is without TLS: expected an endpoint with https://")


def headers_of(config: WithVariables, protocol: OtlpProtocol) -> dict[str, str]:
    """The headers of the table, or of a variable if the table has none.

    Raises:
        ConfigError: A header is malformed. The error never shows a value: it may be a secret.
    """
    rows = config.table("headers")
    variable = None if rows else config.variable("headers")
    if variable:
        rows = listed_headers(config)
    is_grpc = protocol is OtlpProtocol.GRPC
    return checked_headers(
        config,
        rows,
        lambda name: is_grpc and name.startswith("grpc-"),
        GRPC_HEADER_NAME if is_grpc else HEADER_NAME,
        "headers" if variable else "",
    )


def listed_headers(config: WithVariables) -> dict[str, str]:
    """Parse the headers of a variable: ``name=value,name=value``, percent-encoded."""
    rows: dict[str, str] = {}
    for item in config.texts("headers"):
        name, separator, value = item.partition("=")
        if not separator:
            raise config.error("headers", "expected name=value,name=value")
        rows[unquote(name.strip())] = unquote(value.strip())
    return rows
