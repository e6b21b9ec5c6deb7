"""``odradek verify-plugin``: checks a plugin against the contract and names the broken rules."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from textwrap import fill
from typing import Any, NoReturn

import click

from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.hosting.active_plugin import ActivePlugin, activate
from odradek.hosting.offers import CLIENT_TELEMETRY, ENRICHER, QUOTA_CALLBACK, SOURCE
from odradek.hosting.plugin_manager import load_plugins
from odradek.hosting.requested_plugins import by_name
from odradek.plugin.protocols import ClientTelemetryExporterProvider, Forwarder
from odradek.testing.contracts.kinds import rules_of
from odradek.testing.contracts.rule import Hangs, Outcome, Verdict, verdict
from odradek.testing.contracts.subject import Kind, Subject
from odradek.testing.contracts.thread_deaths import ThreadDeaths

LIMIT_S = 10.0
"""Time limit of one rule; a rule that takes longer is reported as hanging."""
WIDEST = 110
"""The most columns of an explanation."""
SKIPPED = "Skipped rules need a test of the plugin's own; odradek new-plugin writes one."
Offer = tuple[str, Kind, Callable[[], Any]]
"""An object that a plugin offers: its name, its kind, and a function that creates a new one."""


@click.command("verify-plugin")
@click.argument("name")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key of the plugin's table; may be repeated.",
)
@json_option
def verify_plugin(name: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Check a plugin against the contract: an installed one, or that of a file.

    Each rule runs on new objects of the plugin. A forwarder sends test pushes to its configured destination.
    """
    table = dict(assignment(text) for text in overrides)
    found: list[Verdict] = []
    with ThreadDeaths() as late:
        for title, kind, make in offers(name, table):
            click.echo(f"{title} ({kind.value})", err=as_json)
            for each in checked(kind, make):
                found.append(each)
                show(as_json, [verdict_object(title, kind, each)], [line(each)])
        late.settle()
    conclude(name, found, late.described(), as_json)


def checked(kind: Kind, make: Callable[[], Any]) -> Iterator[Verdict]:
    """Check the rules in order. After a rule that hangs, the rest are skipped: they would hang as well."""
    hangs = False
    for rule in rules_of(kind):
        if hangs:
            yield Verdict(rule, Outcome.SKIPPED, "not tried because an earlier rule hangs")
            continue
        with contextlib.redirect_stdout(io.StringIO()):  # discards output of the plugin
            found = verdict(rule, Subject(make=make, limit_s=LIMIT_S))
        hangs = isinstance(found.error, Hangs)
        yield found


def assignment(text: str) -> tuple[str, str]:
    """Parse ``key=value``.

    Raises:
        click.UsageError: The text has no key or no ``=``.
    """
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise click.UsageError(f"expected --set key=value, found {text!r}")
    return key, value


def offers(name: str, table: dict[str, str]) -> Iterator[Offer]:
    """Yield everything that the plugin offers with this table. An entry point implements each hook once.

    Raises:
        ConfigError: The plugin is not installed, rejects the table, or offers nothing.
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
    for _ in plugin.offered(SOURCE):
        yield name, Kind.SOURCE, lambda: active(name, table).offered(SOURCE)[0]


def forwarder_of(name: str, table: dict[str, str], forwarder: str) -> Forwarder:
    """Create a new forwarder of the plugin, by its name."""
    return active(name, table).forwarders[forwarder]


def active(name: str, table: dict[str, str]) -> ActivePlugin:
    """Call the hooks of this plugin again; the other plugins are disabled."""
    requested = by_name([name])
    (name,) = requested
    manager = load_plugins(requested)
    others = {other: {"enabled": False} for other in manager.installed if other != name}
    plugins = activate(manager, {**others, name: table}, requested)
    (found,) = [plugin for plugin in plugins if plugin.name == name]
    return found


def line(found: Verdict) -> str:
    """The line of a rule: its name, the outcome, the reason."""
    why = " ".join(found.why.split())
    return f"  {found.rule!s:<22} {found.outcome.value:<7}  {why}".rstrip()


def verdict_object(title: str, kind: Kind, found: Verdict) -> dict[str, str]:
    """A rule as a JSON object."""
    return {
        "name": title,
        "kind": kind.value,
        "rule": str(found.rule),
        "outcome": found.outcome.value,
        "reason": found.why,
    }


def conclude(name: str, found: list[Verdict], late: str, as_json: bool) -> None:
    """Print the summary, on stderr if stdout has JSON objects.

    Args:
        name: The plugin.
        found: The outcome of each rule.
        late: Threads that died after the rule that started them; empty if none has.
        as_json: Whether ``--json`` is given.

    Raises:
        CommandFailed: A rule is broken, or a thread has died.
    """
    counts = {outcome: sum(each.outcome is outcome for each in found) for outcome in Outcome}
    summary = ", ".join(f"{counts[outcome]} {outcome.value}" for outcome in Outcome)
    click.echo(f"{name}: {summary}", err=as_json)
    broken = list(dict.fromkeys(str(each.rule) for each in found if each.outcome is Outcome.FAILED))
    if broken:
        for text in explained(each for each in found if each.outcome is Outcome.FAILED):
            click.echo(text, err=as_json)
        problem = f"{name} breaks the contract: {', '.join(broken)}"
        if any(isinstance(each.error, Hangs) for each in found):
            leave(problem)
        raise CommandFailed(problem)
    if late:
        raise CommandFailed(f"{name} breaks the contract: after a rule, {late}")
    if counts[Outcome.SKIPPED]:
        click.echo(SKIPPED, err=as_json)


def explained(broken: Iterable[Verdict]) -> Iterator[str]:
    """The paragraphs about broken rules, each once, for the width of the terminal."""
    width = min(shutil.get_terminal_size().columns, WIDEST)
    for title, explanation in dict(each.explanation for each in broken).items():
        lines = [
            fill(line, width, initial_indent="  ", subsequent_indent="  ")
            for line in explanation.splitlines()
        ]
        yield "\n".join(["", title, *lines])


def leave(problem: str) -> NoReturn:
    """Exit at once: a normal exit would wait for the threads that hang in the plugin."""
    click.echo(problem, err=True)
    sys.stdout.flush()
    os._exit(1)
