"""Assigns each client to an app, which has a budget of series."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from odradek.findings.app_name import app_name
from odradek.plugin import PluginConfig
from odradek.temporality.budgets.series_counts import ClientFacts
from odradek_prometheus.client_labels import Facts

MAX_TEXT: Final = 256
"""Characters of a client's text that are searched."""
FIELDS: Final = ("client_id", "group_id", "principal")


@dataclass(frozen=True, slots=True)
class AppRule:
    """The clients of an app."""

    app: str
    field: str
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Apps:
    """The rules of the configuration, in their order."""

    rules: tuple[AppRule, ...] = ()

    def facts(self, facts: Facts) -> ClientFacts:
        """The facts that decide which budgets a client counts against."""
        found = dict(facts.pairs)
        software = found.get("client_software_name", "")
        name = found.get("client_id", "")
        return ClientFacts(self.app(found), found.get("principal", ""), software, name)

    def app(self, found: dict[str, str]) -> str:
        """The app of the first rule that fits, else the group, else the client id without its end."""
        for rule in self.rules:
            if rule.pattern.search(found.get(rule.field, "")[:MAX_TEXT]):
                return rule.app
        return app_name(found.get("client_id", ""), found.get("group_id", ""))


def read_apps(config: PluginConfig) -> Apps:
    """Read the table of apps, each with ``client_id=``, ``group_id=`` or ``principal=`` and an expression.

    Raises:
        ConfigError: A value is something else; names the key.
    """
    rules = []
    for app, text in config.table("budget.apps").items():
        name, equals, expression = text.partition("=")
        try:
            pattern = re.compile(expression)
        except re.error as error:
            raise config.error(f"budget.apps.{app}", f"expected a regular expression: {error}") from None
        if not equals or name not in FIELDS:
            expected = f"expected one of {', '.join(FIELDS)}, = and a regular expression, found {text!r}"
            raise config.error(f"budget.apps.{app}", expected)
        rules.append(AppRule(app, name, pattern))
    return Apps(tuple(rules))
