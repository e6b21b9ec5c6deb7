"""Writes the tables of ``host/docs/reference/configuration.md`` from the declarations of the settings.

    python -m contrib.docs.configuration_reference            # from the repository's root
    python -m contrib.docs.configuration_reference --check    # exit status 1 when a table is out of date

Each table follows a line ``<!-- settings: NAME -->``; the rest of the page is written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from odradek.broker.quota_table import QuotaTable
from odradek.broker.throttled_replicas import ThrottledReplicas
from odradek.delivery.forwarder_settings import ForwarderSettings
from odradek.hosting.active_plugin import PluginSettings
from odradek.programs.config import SUBSCRIPTION_SETTINGS, HostConfig
from odradek.quota.replication_rates import ReplicationRates
from odradek.settings.reference import COLUMNS, MARK, meaning, scope, sentence, table
from odradek.settings.setting import Setting, declared, sections, walk

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "host/docs/reference/configuration.md"
SMALLEST = "Smallest"
BOUNDS = re.compile(rf"(?:Largest|{SMALLEST}) value allowed for `(?P<key>[^`]+)`")
PAGE_OF_GATEWAYS = "gateway.md"
"""The page that a gateway's section links once, above its table."""
OWN_SECTION = ("subscription", "quota")
"""A table of one of these scopes does not name it: all of its keys can be changed at run time."""
TABLE_OF_SECTION = {
    "broker": "host",
    "audit": "host",
    "metrics_push": "host",
    "upkeep": "host",
    "workers": "host",
    "longer_units": "host",
    "producer_ids": "host",
    "sasl": "host",
    "oauth": "host",
    "authorizer": "host",
    "tls": "tls",
    "telemetry": "telemetry",
    "subscription_budgets": "telemetry",
    "observation": "telemetry",
    "host_lag": "telemetry",
    "lag": "telemetry",
    "topology": "telemetry",
    "spool": "telemetry",
    "follow": "telemetry",
    "groups": "groups",
    "transactions": "transactions",
    "quotas": "quotas",
    "proxies": "connections",
    "connections": "connections",
    "turns": "connections",
    "memory": "connections",
    "descriptors": "connections",
    "gateway": "gateway",
    "gateway_lag": "gateway",
    "log_defaults": "topics",
}
"""By field of `HostConfig`; a new section has to be put here."""


def tables() -> dict[str, list[Setting]]:
    """The settings of each table, by its name."""
    found: dict[str, list[Setting]] = {"host": list(declared(HostConfig).values())}
    for name, part in sections(HostConfig).items():
        rows = [part.named(each) for _, each in walk(part.type)]
        found.setdefault(TABLE_OF_SECTION[name], []).extend(rows)
    found["connections"] += [each for _, each in walk(ReplicationRates)]
    found["topics"] += [each for _, each in walk(ThrottledReplicas)]
    found["subscriptions"] = list(SUBSCRIPTION_SETTINGS)
    found["quota"] = [each for _, each in walk(QuotaTable)]
    found["plugins"] = [each for _, each in walk(PluginSettings)]
    found["forwarders"] = [each for _, each in walk(ForwarderSettings)]
    return found


def bounds_of(rows: dict[str, list[Setting]]) -> dict[str, list[Setting]]:
    """The settings that only bound another one, least first, by the key of that one."""
    found: dict[str, list[Setting]] = {}
    for each in sorted(chain(*rows.values()), key=lambda each: "max" in each.name):
        if match := BOUNDS.match(each.documentation):
            found.setdefault(match["key"], []).append(each)
    return found


def described(each: Setting, bounds: Iterable[Setting]) -> str:
    """The meaning, with the settings that bound it, and where it can be changed at run time if its section
    does not say so.
    """
    text = sentence(each) if each.page == PAGE_OF_GATEWAYS else meaning(each)
    words = ("from" if SMALLEST in bound.documentation else "to" for bound in bounds)
    named = [
        f"{word} `{bound.name}` ({bound.default_text})" for word, bound in zip(words, bounds, strict=True)
    ]
    if named:
        text += f" Allowed: {' '.join(named)}."
    return f"{text} *At run time: {found}.*" if (found := scope(each)) and found not in OWN_SECTION else text


def written(page: str) -> str:
    """The page with the tables of the declarations."""
    rows = tables()
    names = [match["name"] for match in MARK.finditer(page)]
    if sorted(names) != sorted(rows):
        raise SystemExit(f"expected one mark for each of {', '.join(sorted(rows))}, found {', '.join(names)}")
    bounds = bounds_of(rows)
    folded = {bound.name for found in bounds.values() for bound in found}
    columns = {**COLUMNS, "meaning": lambda each: described(each, bounds.get(each.name, []))}

    def filled(match: re.Match[str]) -> str:
        return match[1] + table([each for each in rows[match["name"]] if each.name not in folded], columns)

    return MARK.sub(filled, page)


def main(arguments: list[str]) -> int:
    """Write or compare; the exit status."""
    page = PAGE.read_text(encoding="utf-8")
    wanted = written(page)
    if arguments == ["--check"]:
        if page != wanted:
            sys.stderr.write(
                f"{PAGE.relative_to(ROOT)} is out of date: python -m contrib.docs.configuration_reference\n"
            )
            return 1
        return 0
    if arguments:
        sys.stderr.write("usage: python -m contrib.docs.configuration_reference [--check]\n")
        return 2
    PAGE.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
