"""The options of ``odradek console``: where it listens, its bounds, tables and alarms."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import click

from odradek.endpoints import Address, ListenerTls, parsed_address
from odradek.endpoints.log_lines import FORMATTERS
from odradek_console.alarms.alarms import Alarms
from odradek_console.alarms.destinations import read_destinations
from odradek_console.alarms.sender import AlarmSender, SenderSettings
from odradek_console.engine.fleet import FleetLimits
from odradek_console.reading.older_points import OlderPoints, TablesSettings
from odradek_console.reading.programs import Programs
from odradek_console.terminal.access_options import PROVIDER, USERS, proxies
from odradek_console.terminal.options import Command, a_file, a_text, duration, given, number, several
from odradek_console.view import View
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.server_settings import ServerSettings

LIMITS: Final = FleetLimits()
QUESTION: Final = TablesSettings(path="")
ACCESS: Final = AccessSettings()
SENDER: Final = SenderSettings()
SERVER: Final = ServerSettings(address=Address("127.0.0.1", 0))
MOST_PROGRAMS: Final = 50


def listen(context: click.Context, parameter: click.Parameter, value: str) -> Address:
    """Read an address."""
    found = parsed_address(value)
    if found is None:
        raise click.BadParameter(f"expected HOST:PORT, found {value!r}")
    return found


def address(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Read the address of a site, without a slash at its end."""
    parts = urlsplit(value)
    is_site = (
        parts.scheme in ("http", "https") and parts.hostname and value.isprintable() and " " not in value
    )
    if value and (not is_site or parts.query or parts.fragment):
        raise click.BadParameter(
            f"expected http://HOST or https://HOST, with a path or none, found {value!r}"
        )
    return value.rstrip("/")


def addresses(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Read addresses of sites."""
    if len(values) > MOST_PROGRAMS:
        raise click.BadParameter(f"expected at most {MOST_PROGRAMS}, found {len(values)}")
    return tuple(address(context, parameter, each) for each in values)


LISTENING: Final = (
    click.option(
        "--listen",
        "listener",
        default="127.0.0.1:0",
        show_default=True,
        metavar="HOST:PORT",
        callback=listen,
        help="Where the pages are. Port 0 is a free one; a host needs another.",
    ),
    a_file("--tls-certificate", "PEM file of the server: https. It may change at run time."),
    a_file("--tls-key", "Key of the server, if in another file."),
    a_file("--tls-client-ca", "Browsers need a certificate of one of these CAs."),
)
BOUNDS: Final = (
    number(
        "--max-sessions",
        ACCESS.max_sessions,
        "logins",
        "Logins at once; of the user with the most, the one that was idle for longest is ended.",
    ),
    duration(
        "--session-idle", "2h", "A login ends after this time without a click; refreshed pages do not count."
    ),
    duration("--session-age", "12h", "A login, and a form, ends after this time."),
    number(
        "--logins-per-minute",
        ACCESS.logins_per_minute,
        "logins",
        "Wrong tokens and refused logins of one address, or one /64 of IPv6; then 429 to wrong ones. A right "
        "one passes.",
    ),
    number(
        "--requests-per-second",
        ACCESS.requests_per_second,
        "requests",
        "Requests of one user, ten times as many at once; then 429.",
    ),
    number(
        "--max-requests-per-user",
        ACCESS.max_requests_per_user,
        "requests",
        "Requests of one user that are answered at once; others of this user wait up to 5 s, then 429.",
    ),
    number(
        "--max-streams",
        ACCESS.max_streams,
        "pages",
        "Live pages at once; further ones are renewed by a reload only.",
    ),
    number("--max-streams-per-user", ACCESS.max_streams_per_user, "pages", "Live pages of one user."),
    number("--max-body-bytes", ACCESS.max_body_bytes, "bytes", "Size of a request, which has 30 s to come."),
    number(
        "--max-connections", SERVER.max_connections, "connections", "Connections; further ones are closed."
    ),
    number(
        "--max-connections-per-ip",
        SERVER.max_connections_per_ip,
        "connections",
        "Connections of one address, or one /64 of IPv6; further ones are closed. Those of a trusted proxy "
        "do not count; raise it if another one brings all requests.",
    ),
    number(
        "--max-header-bytes",
        SERVER.max_header_bytes,
        "bytes",
        "Size of the headers of a request, which have 15 s to come.",
    ),
    number("--max-clients", LIMITS.max_clients, "clients", "Client instances that are known."),
    number("--max-series", LIMITS.max_series, "series", "Series of all clients."),
    number("--max-totals-bytes", LIMITS.max_totals_bytes, "bytes", "Memory of totals."),
    number("--max-history-bytes", LIMITS.max_history_bytes, "bytes", "Memory of histories."),
    duration("--retain", "12h", "A client that is gone is forgotten after this time."),
)


TABLES: Final = (
    click.option(
        "--tables",
        metavar="FOLDER",
        help="Path or URI of the dataset of odradek-spark: plots of a client then go back 30 days.",
    ),
    number(
        "--tables-max-rows",
        QUESTION.max_rows,
        "points",
        "Points of a client that a question to the tables reads.",
    ),
    number(
        "--tables-max-bytes",
        QUESTION.max_bytes,
        "bytes",
        "Size of the files that a question to the tables reads.",
    ),
    duration("--tables-timeout", "10s", "Time of a question to the tables."),
)
ALARMS: Final = (
    a_text(
        "--public-url",
        "URL",
        "Where people reach the pages, for links in alarms: https://console.example.org.",
        read=address,
    ),
    several(
        "--program",
        "URL",
        "A gateway or host, by its metrics.listener; the pages show its state and destinations. May be "
        "repeated.",
        addresses,
    ),
    a_file(
        "--program-token-file",
        "File with the metrics.listener.token of these programs. It may change at run time.",
    ),
    a_file("--program-ca", "PEM file of the CA of their certificates, if the system does not know it."),
    a_text(
        "--grafana-url",
        "URL",
        "A Grafana with the dashboards of contrib/grafana: pages of clients and groups lead there.",
        read=address,
    ),
    a_file("--alarms", "TOML file of destinations of alarms: Slack, mail, webhooks and others, by Apprise."),
    number(
        "--max-waiting-alarms",
        SENDER.max_waiting,
        "messages",
        "Messages that wait for a destination of alarms; beyond them the oldest are left out.",
    ),
    duration(
        "--alarm-retry", "1h", "A message that a destination does not take is given up after this time."
    ),
)
LOGS: Final = (
    click.option(
        "--audit-log",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the audit log here instead of stderr, as JSON that only its owner can read.",
    ),
    click.option(
        "--log-format",
        type=click.Choice(list(FORMATTERS)),
        default="text",
        show_default=True,
        help="Form of the log on stderr.",
    ),
)


def console_options(command: Command) -> Command:
    """Add the options."""
    for option in reversed((*LISTENING, *USERS, *PROVIDER, *LOGS, *TABLES, *ALARMS, *BOUNDS)):
        command = option(command)
    return command


def server_settings(options: dict[str, Any]) -> ServerSettings:
    """The address to listen on, with TLS and bounds.

    Raises:
        click.UsageError: There is a key without a certificate, or a file is not usable.
    """
    certificate, key, client_ca = (options[f"tls_{each}"] for each in ("certificate", "key", "client_ca"))
    tls = None
    if certificate is not None:
        tls = ListenerTls(certificate=certificate, key=key, client_ca=client_ca)
        try:
            tls.context()
        except (OSError, ValueError) as error:
            raise click.UsageError(f"--tls-certificate: {error}") from None
    elif key is not None or client_ca is not None:
        raise click.UsageError("--tls-certificate is missing")
    return given(ServerSettings, options, address=options["listener"], tls=tls, proxies=proxies(options))


def older_points(options: dict[str, Any]) -> OlderPoints | None:
    """The tables; None without a folder."""
    if options["tables"] is None:
        return None
    return OlderPoints(given(TablesSettings, options, "tables_", path=options["tables"]))


def alarm_sender(options: dict[str, Any], view: View, programs: Programs) -> AlarmSender | None:
    """What sends alarms; None without destinations.

    Raises:
        ConfigError: The file of the destinations is not usable.
    """
    if options["alarms"] is None:
        return None
    settings = SenderSettings(
        max_waiting=options["max_waiting_alarms"], retry_s=options["alarm_retry_ms"] / 1000
    )
    alarms, destinations = Alarms(options["public_url"]), read_destinations(options["alarms"])
    return AlarmSender(view, alarms, destinations, settings, programs=programs.rows)


def programs(options: dict[str, Any]) -> Programs:
    """The gateways and hosts.

    Raises:
        click.UsageError: The file of the authorities is not usable.
    """
    try:
        return Programs(options["programs"], token=options["program_token_file"], ca=options["program_ca"])
    except OSError as error:
        raise click.UsageError(f"--program-ca: {error}") from None
