"""``odradek console``: serve the pages until it is stopped."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from odradek.endpoints import ListenerTls
from odradek.endpoints.log_lines import FORMATTERS, JsonFormatter, LibraryFilter, PrivateFileHandler
from odradek.endpoints.tls_entrance import NoTlsLoop
from odradek.settings.options import options_of, settings_of
from odradek_console.alarms.alarms import Alarms
from odradek_console.alarms.destinations import read_destinations
from odradek_console.alarms.sender import AlarmSender
from odradek_console.console_settings import ConsoleSettings
from odradek_console.engine.owners import read_owners
from odradek_console.reading.older_points import OlderPoints
from odradek_console.reading.programs import Programs
from odradek_console.terminal.options import connector
from odradek_console.view import View, ViewSettings
from odradek_console.web.access import Access
from odradek_console.web.app import make_app
from odradek_console.web.console import Console, make_console
from odradek_console.web.server import WebServer
from odradek_console.web.server_settings import ServerSettings

log = logging.getLogger(__name__)

READY: Final = "odradek console ready {}"
LONGEST_STOP_S: Final = 4.0
"""The program ends after this time, whatever a thread is still waiting for."""


@click.command("console", epilog="\b\nExample:\n  odradek console --bootstrap-server localhost:9092")
@options_of(ConsoleSettings, required=["bootstrap.servers"])
@click.option("--until-stdin-ends", is_flag=True, help="Stop at the end of standard input, too.")
def console(until_stdin_ends: bool, **options: Any) -> None:
    """Show the clients of a host or a cluster in the browser.

    Prints the address of the page once it can be opened. Stop it with SIGTERM or Ctrl-C.
    """
    settings = settings_of(ConsoleSettings, options)
    reading = settings.reading
    log_to_stderr(settings.log_format)
    if settings.audit_log is not None:
        audit_to_file(settings.audit_log)
    server = server_settings(settings)
    access = Access(settings.access, server.address)
    servers = reading.bootstrap_servers or ""
    connect = connector(servers, reading.command_config)
    read = ViewSettings(
        topic=reading.topic,
        history_ms=reading.history_ms,
        owners=read_owners(reading.owners),
        limits=settings.limits,
    )
    view = View(connect, read)
    older = OlderPoints(settings.tables) if settings.tables.path else None
    behind = make_console(view, connect, servers, access, older)
    behind.programs, behind.grafana = programs(settings), settings.grafana_url
    behind.alarms = alarm_sender(settings, view, behind.programs)
    serve(behind, server, until_stdin_ends=until_stdin_ends)


def server_settings(settings: ConsoleSettings) -> ServerSettings:
    """The address to listen on, with TLS and bounds.

    Raises:
        click.UsageError: There is a key without a certificate, or a file is not usable.
    """
    certificate, key, client_ca = settings.tls_certificate, settings.tls_key, settings.tls_client_ca
    tls = None
    if certificate is not None:
        tls = ListenerTls(certificate=certificate, key=key, client_ca=client_ca)
        try:
            tls.context()
        except (OSError, ValueError) as error:
            raise click.UsageError(f"--tls-certificate: {error}") from None
    elif key is not None or client_ca is not None:
        raise click.UsageError("--tls-certificate is missing")
    return replace(settings.server, tls=tls, proxies=settings.users.proxies)


def alarm_sender(settings: ConsoleSettings, view: View, programs: Programs) -> AlarmSender | None:
    """What sends alarms; None without destinations.

    Raises:
        ConfigError: The file of the destinations is not usable.
    """
    if settings.alarms is None:
        return None
    alarms, destinations = Alarms(settings.public_url), read_destinations(settings.alarms)
    return AlarmSender(view, alarms, destinations, settings.sender, programs=programs.rows)


def programs(settings: ConsoleSettings) -> Programs:
    """The gateways and hosts.

    Raises:
        click.UsageError: The file of the authorities is not usable.
    """
    try:
        return Programs(settings.programs, token=settings.program_token_file, ca=settings.program_ca)
    except OSError as error:
        raise click.UsageError(f"--program-ca: {error}") from None


def serve(behind: Console, settings: ServerSettings, *, until_stdin_ends: bool) -> None:
    """Serve the pages until a signal comes.

    Raises:
        click.ClickException: The address cannot be listened on, or the loop must not serve TLS.
    """
    access = behind.access.settings
    if access.has_page and settings.tls is None and not access.proxies.networks:
        log.warning("logins and pages are not encrypted: add --tls-certificate, or a proxy with TLS")
    try:
        server = WebServer(make_app(behind), settings, announce, behind.server)
    except OSError as error:
        host, port = settings.address
        raise click.ClickException(f"--listen {host}:{port}: {error.strerror or error}") from None

    def stop(*_: object) -> None:
        log.info("stopping")
        behind.stopping.set()
        behind.view.reader.stopped.set()
        behind.watch.stopping.set()
        server.stop()
        end_later()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    if until_stdin_ends:
        threading.Thread(target=at_end_of_stdin, args=(stop,), name="stdin", daemon=True).start()
    try:
        with behind:
            server.run_until_stopped()
    except NoTlsLoop as error:
        raise click.ClickException(str(error)) from None


def announce(url: str) -> None:
    """Print the ready line."""
    click.echo(READY.format(url))
    sys.stdout.flush()


def at_end_of_stdin(stop: Callable[[], None]) -> None:
    """Stop at the end of standard input: a pipe ends with the host, even if that is killed."""
    sys.stdin.buffer.read()
    stop()


def end_later() -> None:
    """End the program soon, even if a thread waits for a cluster that does not answer."""
    timer = threading.Timer(LONGEST_STOP_S, os._exit, (0,))
    timer.daemon = True
    timer.start()


def log_to_stderr(form: str) -> None:
    """Log to stderr; stdout belongs to the ready line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(FORMATTERS[form]())
    handler.addFilter(LibraryFilter())
    logging.basicConfig(level=logging.INFO, handlers=[handler])


def audit_to_file(path: Path) -> None:
    """Write the audit log to a file that only its owner can read.

    Raises:
        click.BadParameter: The file cannot be written.
    """
    try:
        handler = PrivateFileHandler(path, encoding="utf-8")
    except OSError as error:
        raise click.BadParameter(
            f"{path} cannot be written: {error.strerror}", param_hint="--audit-log"
        ) from None
    handler.setFormatter(JsonFormatter())
    audit = logging.getLogger("odradek.audit")
    audit.addHandler(handler)
    audit.propagate = False
