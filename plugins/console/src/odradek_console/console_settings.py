"""The keys of ``[plugins.console]``, which are the options of ``odradek console``. Times are milliseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from odradek.endpoints.log_lines import FORMATTERS
from odradek.plugin import ConfigError
from odradek.settings import FILE, NEW_FILE, Choice, declare, section
from odradek_console.alarms.sender import SenderSettings
from odradek_console.engine.fleet import FleetLimits
from odradek_console.reading.tables_settings import TablesSettings
from odradek_console.reading_settings import ReadingSettings
from odradek_console.setting_kinds import SITE, SITES
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.oidc_settings import OidcSettings
from odradek_console.web.server_settings import ServerSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """All settings of a console."""

    reading: ReadingSettings = section(ReadingSettings)
    server: ServerSettings = section(ServerSettings)
    users: AccessSettings = section(AccessSettings)
    oidc: OidcSettings = section(OidcSettings)
    # fmt: off
    tls_certificate: Path | None = declare(
        "tls.certificate", FILE, None, "PEM file of the server: https. It may change at run time.",
        unset="none",
    )
    tls_key: Path | None = declare(
        "tls.key", FILE, None, "Key of the server, if in another file.", unset="none",
    )
    tls_client_ca: Path | None = declare(
        "tls.client.ca", FILE, None, "Browsers need a certificate of one of these CAs.", unset="none",
    )
    audit_log: Path | None = declare(
        "audit.log", NEW_FILE, None,
        "Write the audit log here instead of stderr, as JSON that only its owner can read.", unset="stderr",
    )
    log_format: str = declare(
        "log.format", Choice({each: each for each in FORMATTERS}), "text", "Form of the log on stderr.",
    )
    public_url: str = declare(
        "public.url", SITE, "",
        "Where people reach the pages, for links in alarms: https://console.example.org.", unset="none",
    )
    programs: Sequence[str] = declare(
        "programs", SITES, (),
        "A gateway or host, by its metrics.listener; the pages show its state and destinations.",
        unset="none", option="--program", page="../../host/docs/reference/metrics.md",
    )
    program_token_file: Path | None = declare(
        "program.token.file", FILE, None,
        "File with the metrics.listener.token of these programs. It may change at run time.", unset="none",
    )
    program_ca: Path | None = declare(
        "program.ca", FILE, None,
        "PEM file of the CA of their certificates, if the system does not know it.",
        unset="those of the system",
    )
    grafana_url: str = declare(
        "grafana.url", SITE, "",
        "A Grafana with the dashboards of contrib/grafana: pages of clients and groups lead there.",
        unset="none", page="../../contrib/grafana/README.md",
    )
    alarms: Path | None = declare(
        "alarms", FILE, None,
        "TOML file of destinations of alarms: Slack, mail, webhooks and others, by Apprise.",
        unset="none", page="#alarms",
    )
    # fmt: on
    tables: TablesSettings = section(TablesSettings)
    sender: SenderSettings = section(SenderSettings)
    limits: FleetLimits = section(FleetLimits)

    @property
    def access(self) -> AccessSettings:
        """The users, their roles and the provider.

        Raises:
            ConfigError: There are options of an OpenID provider, but no issuer.
        """
        if self.oidc.issuer:
            return replace(self.users, oidc=self.oidc)
        if self.oidc != OidcSettings():
            problem = "expected the issuer, since there are other options of a provider"
            raise ConfigError("--oidc-issuer", problem)
        return self.users
