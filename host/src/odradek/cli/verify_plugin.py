"""``odradek verify-plugin``: hold an installed plugin against the contract, and say what to do about it."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NoReturn

import click

from odradek.cli.errors import CommandFailed
from odradek.plugin.protocols import ClientTelemetryExporterProvider, Forwarder
from odradek.server.plugins.active_plugin import ActivePlugin, activate
from odradek.server.plugins.offers import CLIENT_TELEMETRY, ENRICHER, QUOTA_CALLBACK
from odradek.server.plugins.plugin_manager import load_plugins
from odradek.testing.contracts.kinds import rules_of
from odradek.testing.contracts.rule import PAGE, Hangs, Outcome, Verdict, verdict
from odradek.testing.contracts.subject import Kind, Subject

LIMIT_S = 10.0
"""For one rule; what is not over by then hangs."""
Offer = tuple[str, Kind, Callable[[], Any]]
"""What it is called, what it is, and how a new one is made."""


@click.command("verify-plugin")
@click.argument("name")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="A key of the plugin's table. May be repeated.",
)
def verify_plugin(name: str, overrides: tuple[str, ...]) -> None:
    """Check an installed plugin against the contract.

    Each rule gets a new one of what the plugin offers. A forwarder sends test pushes to where its table says.
    """
    table = dict(assignment(text) for text in overrides)
    found: list[Verdict] = []
    for title, kind, make in offers(name, table):
        click.echo(f"{title} ({kind.value})")
        for each in checked(kind, make):
            found.append(each)
            click.echo(line(each))
    conclude(name, found)


def checked(kind: Kind, make: Callable[[], Any]) -> Iterator[Verdict]:
    """Rule after rule; once it hangs the others are not tried, they would wait as long."""
    hangs = False
    for rule in rules_of(kind):
        if hangs:
            yield Verdict(rule, Outcome.SKIPPED, "not tried, it hangs")
            continue
        with contextlib.redirect_stdout(io.StringIO()):  # what the plugin itself prints
            found = verdict(rule, Subject(make=make, limit_s=LIMIT_S))
        hangs = isinstance(found.error, Hangs)
        yield found


def assignment(text: str) -> tuple[str, str]:
    """``key=value``.

    Raises:
        click.UsageError: It is none.
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.UsageError(f"expected --set key=value, found {text!r}")
    return key, value


def offers(name: str, table: dict[str, str]) -> Iterator[Offer]:
    """All that the plugin offers with this table; one entry point has a hook once.

    Raises:
        ConfigError: It is not installed, refuses the table, or offers nothing.
    """
    plugin = active(name, table)
    for provider in plugin.offered(CLIENT_TELEMETRY):
        kind = Kind.EXPORTER if isinstance(provider, ClientTelemetryExporterProvider) else Kind.RECEIVER
        yield name, kind, lambda: active(name, table).offered(CLIENT_TELEMETRY)[0]
    for _ in plugin.offered(ENRICHER):
        yield name, Kind.ENRICHER, lambda: active(name, table).offered(ENRICHER)[0]
    for forwarder in plugin.forwarders:
        yield forwarder, Kind.FORWARDER, partial(forwarder_of, name, table, forwarder)
    for _ in plugin.offered(QUOTA_CALLBACK):
        yield name, Kind.QUOTA_CALLBACK, lambda: active(name, table).offered(QUOTA_CALLBACK)[0]


def forwarder_of(name: str, table: dict[str, str], forwarder: str) -> Forwarder:
    """A new one of those that a plugin offers."""
    return active(name, table).forwarders[forwarder]


def active(name: str, table: dict[str, str]) -> ActivePlugin:
    """The plugin, its hooks called once more; of the others none is asked."""
    manager = load_plugins()
    others = {other: {"enabled": False} for other in manager.installed if other != name}
    plugins = activate(manager, {**others, name: table}, {name})
    (found,) = [plugin for plugin in plugins if plugin.name == name]
    return found


def line(found: Verdict) -> str:
    """A rule, what came of it, why."""
    why = " ".join(found.why.split())
    return f"  {found.rule!s:<22} {found.outcome.value:<7}  {why}".rstrip()


def conclude(name: str, found: list[Verdict]) -> None:
    """Sum up.

    Raises:
        CommandFailed: A rule is broken.
    """
    counts = {outcome: sum(each.outcome is outcome for each in found) for outcome in Outcome}
    summary = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome)
    click.echo(f"{name}: {summary}")
    broken = [each.rule for each in found if each.outcome is Outcome.FAILED]
    if broken:
        pages = ", ".join(dict.fromkeys(f"#r{rule.number}-{rule.name}" for rule in broken))
        problem = f"{name} breaks the contract; what each rule wants and why: {PAGE}, {pages}"
        if any(isinstance(each.error, Hangs) for each in found):
            leave(problem)
        raise CommandFailed(problem)
    if counts[Outcome.SKIPPED]:
        click.echo(f"what was skipped needs a test of the plugin's own: {PAGE}")


def leave(problem: str) -> NoReturn:
    """End at once: Python would wait for threads that the plugin does not let go."""
    click.echo(problem, err=True)
    sys.stdout.flush()
    os._exit(1)
